with Ada.Real_Time; use Ada.Real_Time;
with Ada.Real_Time.Timing_Events; use Ada.Real_Time.Timing_Events;
with Ada.Synchronous_Task_Control; use Ada.Synchronous_Task_Control;
with Bulkhead.Console; use Bulkhead.Console;
with System;
package body Timing is

   Start : constant Time := Clock;
   Event : Timing_Event;
   Due   : Suspension_Object;
   Jobs  : Natural := 0;

   protected Bell with Interrupt_Priority => System.Interrupt_Priority'Last is
      procedure Ring (Event : in out Timing_Event);
   end Bell;

   protected body Bell is
      procedure Ring (Event : in out Timing_Event) is
      begin
         Set_Handler (Event, Clock + Milliseconds (3), Ring'Access);
         Set_True (Due);
      end Ring;
   end Bell;

   procedure Cancel is
      First, Second : Boolean;
   begin
      Cancel_Handler (Event, First);
      Cancel_Handler (Event, Second);
      if First and not Second then
         Put_Line ("cancelled, once");
      else
         Put_Line ("not cancelled");
      end if;
   end Cancel;

   task body Told is
   begin
      Set_Handler (Event, Clock + Milliseconds (3), Bell.Ring'Access);
      Jobs := 1;
      loop
         Suspend_Until_True (Due);
         Put_Line ("told at ", Long_Long_Integer ((Clock - Start) / Milliseconds (1)));
         Jobs := Jobs + 1;
         if Jobs = 7 then
            Cancel;
         end if;
      end loop;
   end Told;
end Timing;
