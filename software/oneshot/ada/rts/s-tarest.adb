package body System.Tasking.Restricted.Stages is

   --  The kernel knows its tasks by the procedures of their bodies.
   procedure Create (Procedure_Of_Body : Task_Procedure_Access; Parameter : Address; Priority : Integer)
     with Import, Convention => C, External_Name => "bulkhead_ada_create";

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
      Created_Task      : Task_Id)
   is
      pragma Unreferenced
        (Stack_Address, Stack_Size, Sec_Stack_Address, Sec_Stack_Size, Task_Info, CPU, Elaborated, Chain,
         Task_Image, Created_Task);
   begin
      Create (State, Discriminants, Priority);
   end Create_Restricted_Task;

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
      Created_Task      : Task_Id)
   is
      pragma Unreferenced
        (Stack_Address, Stack_Size, Sec_Stack_Address, Sec_Stack_Size, Task_Info, CPU, Elaborated, Task_Image,
         Created_Task);
   begin
      Create (State, Discriminants, Priority);
   end Create_Restricted_Task_Sequential;

end System.Tasking.Restricted.Stages;
