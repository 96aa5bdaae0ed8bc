with Bulkhead.Suspensions;
package body Ada.Synchronous_Task_Control is

   procedure Suspend_Until_True (S : in out Suspension_Object) is
      --  Ends the job; the next one returns from the call.
      procedure Wait_For (S : in out Suspension_Object)
        with Import, Convention => C, External_Name => "bulkhead_ada_wait_for";
   begin
      Wait_For (S);
      Bulkhead.Suspensions.Forget;
   end Suspend_Until_True;

end Ada.Synchronous_Task_Control;
