--  A filter on 2 cores in all.
with Filter_Of;
package Filter_On_2 with Elaborate_Body is
   package On is new Filter_Of (2);
end Filter_On_2;
