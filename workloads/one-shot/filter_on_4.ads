--  A filter on 4 cores in all.
with Filter_Of;
package Filter_On_4 with Elaborate_Body is
   package On is new Filter_Of (4);
end Filter_On_4;
