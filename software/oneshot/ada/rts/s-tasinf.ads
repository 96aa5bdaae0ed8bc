--  The compiler passes this for each task; nothing is in it.
package System.Task_Info with Pure, No_Elaboration_Code_All is
   type Task_Info_Type is range 0 .. 0;
   Unspecified_Task_Info : constant Task_Info_Type := 0;
end System.Task_Info;
