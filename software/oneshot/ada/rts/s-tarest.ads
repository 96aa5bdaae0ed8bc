--  Tasks: the compiler calls this when it elaborates their declarations.
with System.Parameters;
with System.Secondary_Stack;
with System.Task_Info;
package System.Tasking.Restricted.Stages with Elaborate_Body is

   procedure Create_Restricted_Task
     (Priority          : Integer;
      Stack_Address     : Address;
      Stack_Size        : Parameters.Size_Type;
      Sec_Stack_Address : Secondary_Stack.SS_Stack_Ptr;
      Sec_Stack_Size    : Parameters.Size_Type;
      Task_Info         : System.Task_Info.Task_Info_Type;
      CPU               : Integer;
      State             : Task_Procedure_Access;
      Discriminants     : Address;
      Elaborated        : Access_Boolean;
      Chain             : in out Activation_Chain;
      Task_Image        : String;
      Created_Task      : Task_Id);

   procedure Create_Restricted_Task_Sequential
     (Priority          : Integer;
      Stack_Address     : Address;
      Stack_Size        : Parameters.Size_Type;
      Sec_Stack_Address : Secondary_Stack.SS_Stack_Ptr;
      Sec_Stack_Size    : Parameters.Size_Type;
      Task_Info         : System.Task_Info.Task_Info_Type;
      CPU               : Integer;
      State             : Task_Procedure_Access;
      Discriminants     : Address;
      Elaborated        : Access_Boolean;
      Task_Image        : String;
      Created_Task      : Task_Id);

   procedure Activate_Restricted_Tasks (Chain_Access : Activation_Chain_Access) is null;
   procedure Complete_Restricted_Activation is null with Inline_Always;

   --  The end of a task's body.
   procedure Complete_Restricted_Task with Import, Convention => C, External_Name => "bulkhead_ada_end", No_Return;

end System.Tasking.Restricted.Stages;
