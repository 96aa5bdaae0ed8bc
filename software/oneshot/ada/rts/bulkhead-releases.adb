with Bulkhead.Suspensions;
package body Bulkhead.Releases is
   procedure Wait_For_Next is
      --  Ends the job; the next one returns from the call.
      procedure Next with Import, Convention => C, External_Name => "bulkhead_ada_next";
   begin
      Next;
      Bulkhead.Suspensions.Forget;
   end Wait_For_Next;
end Bulkhead.Releases;
