with Ada.Real_Time; use Ada.Real_Time;
with Bulkhead.Console;
package body Periodic is
   Next    : Time := Clock;
   Has_Run : Boolean := False with Volatile;

   task body Worker is
   begin
      loop
         Bulkhead.Console.Put_Line (Line);
         Has_Run := True;
         Next := Next + Milliseconds (Bulkhead.Period);
         delay until Next;
      end loop;
   end Worker;
end Periodic;
