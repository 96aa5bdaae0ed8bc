--  What the compiler knows of a task.
package System.Tasking with Preelaborate is

   --  The state of a task is the kernel's; the compiler allocates this for each.
   type Ada_Task_Control_Block (Entry_Num : Integer) is limited null record;
   type Task_Id is access all Ada_Task_Control_Block;
   Null_Task : constant Task_Id := null;

   type Task_Procedure_Access is access procedure (Parameter : Address) with Convention => C;
   type Access_Boolean is access all Boolean;

   type Activation_Chain is limited null record;
   type Activation_Chain_Access is access all Activation_Chain;

   Unspecified_Priority : constant Integer := -1;
   Unspecified_CPU      : constant := -1;

   type Entry_Index is range 0 .. 64;
   Null_Entry : constant := 0;
   Max_Entry  : constant := 64;

   type Task_Entry_Index is new Entry_Index range Null_Entry .. Max_Entry;

   --  How a call of an entry is made; the profile allows simple calls only.
   type Call_Modes is (Simple_Call, Conditional_Call, Asynchronous_Call, Timed_Call);

end System.Tasking;
