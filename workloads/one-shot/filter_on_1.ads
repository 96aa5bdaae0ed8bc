--  A filter on 1 core in all.
with Filter_Of;
package Filter_On_1 with Elaborate_Body is
   package On is new Filter_Of (1);
end Filter_On_1;
