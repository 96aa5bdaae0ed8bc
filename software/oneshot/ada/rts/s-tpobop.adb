with Bulkhead.Suspensions;
package body System.Tasking.Protected_Objects.Operations is

   --  The task whose job runs.
   Current : Address with Import, Convention => C, External_Name => "bulkhead_ada_current";

   --  Ends the job, until the task is woken. The second one keeps the frame of the task's body.
   procedure Wait with Import, Convention => C, External_Name => "bulkhead_ada_wait";
   procedure Wait_Kept with Import, Convention => C, External_Name => "bulkhead_ada_wait_kept";
   procedure Wake (Caller : Address) with Import, Convention => C, External_Name => "bulkhead_ada_wake";
   procedure Second_Caller
     with Import, Convention => C, External_Name => "bulkhead_ada_second_caller", No_Return;
   --  Performs an entry's body with the caller's frame where it was.
   procedure Serve
     (Caller     : Address;
      Action     : Entry_Action_Pointer;
      Object     : Address;
      Parameters : Address;
      E          : Protected_Entry_Index)
     with Import, Convention => C, External_Name => "bulkhead_ada_serve";

   function Body_Of (Object : Entries.Protection_Entries_Access; E : Protected_Entry_Index) return Entry_Body is
     (Object.Entry_Bodies (Object.Find_Body_Index (Object.Compiler_Info, E)));

   procedure Serve_Others (Object : Entries.Protection_Entries_Access) is
      E : Protected_Entry_Index := 1;
   begin
      while E <= Object.Num_Entries loop
         declare
            Next : Entries.Call renames Object.Waiting (E);
            Caller : constant Address := Next.Caller;
         begin
            if Caller /= Null_Address and then Body_Of (Object, E).Barrier (Object.Compiler_Info, E) then
               Next.Caller := Null_Address;
               if Next.Parameters = Null_Address then
                  Body_Of (Object, E).Action (Object.Compiler_Info, Null_Address, E);
               else
                  Serve (Caller, Body_Of (Object, E).Action, Object.Compiler_Info, Next.Parameters, E);
               end if;
               Wake (Caller);
               E := 1;
            else
               E := E + 1;
            end if;
         end;
      end loop;
   end Serve_Others;

   procedure Service_Entries (Object : Entries.Protection_Entries_Access) is
   begin
      Serve_Others (Object);
      Release (Object.Common.Status);
   end Service_Entries;

   function Waits
     (Object : Entries.Protection_Entries_Access; E : Protected_Entry_Index; Parameters : Address) return Boolean
   is
   begin
      Seize (Object.Common.Status);
      if Body_Of (Object, E).Barrier (Object.Compiler_Info, E) then
         Body_Of (Object, E).Action (Object.Compiler_Info, Parameters, E);
         Serve_Others (Object);
         Release (Object.Common.Status);
         return False;
      elsif Object.Waiting (E).Caller /= Null_Address then
         Second_Caller;
      end if;
      Object.Waiting (E) := (Current, Parameters);
      Object.Common.Status := 0;
      return True;
   end Waits;

   procedure Protected_Entry_Call
     (Object             : Entries.Protection_Entries_Access;
      E                  : Protected_Entry_Index;
      Uninterpreted_Data : Address;
      Mode               : Call_Modes;
      Block              : Communication_Block)
   is
      pragma Unreferenced (Mode, Block);
   begin
      if Waits (Object, E, Uninterpreted_Data) then
         if Uninterpreted_Data = Null_Address then
            Wait;
         else
            Wait_Kept;
         end if;
      end if;
      Bulkhead.Suspensions.Forget;
   end Protected_Entry_Call;

   function Protected_Count (Object : Entries.Protection_Entries; E : Protected_Entry_Index) return Natural is
     (if Object.Waiting (E).Caller = Null_Address then 0 else 1);

end System.Tasking.Protected_Objects.Operations;
