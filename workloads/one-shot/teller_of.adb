with Ada.Real_Time; use Ada.Real_Time;
with Bulkhead.Console;
with Interfaces; use Interfaces;
package body Teller_Of is

   --  Cycles for each tick of the period: a twenty-fifth of 1 ms at 600 MHz.
   Share : constant := 24_000;

   procedure Work is
      Start : constant Unsigned_64 := Bulkhead.Cycles;
   begin
      while Bulkhead.Cycles - Start < Unsigned_64 (Bulkhead.Period) * Share loop
         null;
      end loop;
   end Work;

   Next : Time := Time_First;

   task body Teller is
   begin
      loop
         Bulkhead.Console.Put_Line ("period ", Long_Long_Integer (Bulkhead.Period));
         Work;
         --  Releases count from the end of the first job, as those of the tasks in Rust and C.
         if Next = Time_First then
            Next := Clock;
         end if;
         Next := Next + Milliseconds (Bulkhead.Period);
         delay until Next;
      end loop;
   end Teller;

end Teller_Of;
