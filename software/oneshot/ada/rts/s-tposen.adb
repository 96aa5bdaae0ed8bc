with Bulkhead.Suspensions;
package body System.Tasking.Protected_Objects.Single_Entry is

   --  The task whose job runs.
   Current : Address with Import, Convention => C, External_Name => "bulkhead_ada_current";

   --  Ends the job, until the task is woken. The second one keeps the frame of the task's body.
   procedure Wait with Import, Convention => C, External_Name => "bulkhead_ada_wait";
   procedure Wait_Kept with Import, Convention => C, External_Name => "bulkhead_ada_wait_kept";
   procedure Wake (Caller : Address) with Import, Convention => C, External_Name => "bulkhead_ada_wake";
   procedure Second_Caller
     with Import, Convention => C, External_Name => "bulkhead_ada_second_caller", No_Return;

   --  Performs the entry's body with the caller's frame where it was.
   procedure Serve
     (Caller     : Address;
      Action     : Entry_Action_Pointer;
      Object     : Address;
      Parameters : Address;
      E          : Protected_Entry_Index)
     with Import, Convention => C, External_Name => "bulkhead_ada_serve";

   procedure Initialize_Protection_Entry
     (Object           : Protection_Entry_Access;
      Ceiling_Priority : Integer;
      Compiler_Info    : Address;
      Entry_Body       : Entry_Body_Access)
   is
      pragma Unreferenced (Ceiling_Priority);
   begin
      Object.Compiler_Info := Compiler_Info;
      Object.Its_Body := Entry_Body;
      Object.Caller := Null_Address;
   end Initialize_Protection_Entry;

   procedure Lock_Entry (Object : Protection_Entry_Access) is
   begin
      Seize (Object.Common.Status);
   end Lock_Entry;

   procedure Unlock_Entry (Object : Protection_Entry_Access) is
   begin
      Release (Object.Common.Status);
   end Unlock_Entry;

   procedure Service_Entry (Object : Protection_Entry_Access) is
      Caller : constant Address := Object.Caller;
   begin
      if Caller /= Null_Address and then Object.Its_Body.Barrier (Object.Compiler_Info, 1) then
         Object.Caller := Null_Address;
         if Object.Parameters = Null_Address then
            Object.Its_Body.Action (Object.Compiler_Info, Null_Address, 1);
         else
            Serve (Caller, Object.Its_Body.Action, Object.Compiler_Info, Object.Parameters, 1);
         end if;
         Wake (Caller);
      end if;
      Release (Object.Common.Status);
   end Service_Entry;

   function Waits (Object : Protection_Entry_Access; Parameters : Address) return Boolean is
   begin
      Seize (Object.Common.Status);
      if Object.Its_Body.Barrier (Object.Compiler_Info, 1) then
         Object.Its_Body.Action (Object.Compiler_Info, Parameters, 1);
      elsif Object.Caller /= Null_Address then
         Second_Caller;
      else
         Object.Caller := Current;
         Object.Parameters := Parameters;
         Object.Common.Status := 0;
         return True;
      end if;
      Release (Object.Common.Status);
      return False;
   end Waits;

   procedure Protected_Single_Entry_Call (Object : Protection_Entry_Access; Uninterpreted_Data : Address) is
   begin
      if Waits (Object, Uninterpreted_Data) then
         if Uninterpreted_Data = Null_Address then
            Wait;
         else
            Wait_Kept;
         end if;
      end if;
      Bulkhead.Suspensions.Forget;
   end Protected_Single_Entry_Call;

   function Protected_Count_Entry (Object : Protection_Entry) return Natural is
     (if Object.Caller = Null_Address then 0 else 1);

end System.Tasking.Protected_Objects.Single_Entry;
