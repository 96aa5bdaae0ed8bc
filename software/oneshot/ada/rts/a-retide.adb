with Bulkhead.Suspensions;
package body Ada.Real_Time.Delays is
   procedure Delay_Until (T : Time) is
      --  Ends the job; the next one returns from the call.
      procedure Suspend (Nanoseconds : Long_Long_Integer)
        with Import, Convention => C, External_Name => "bulkhead_ada_delay_until";
   begin
      Suspend (Long_Long_Integer (T));
      Bulkhead.Suspensions.Forget;
   end Delay_Until;
end Ada.Real_Time.Delays;
