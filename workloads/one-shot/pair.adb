--  The consumer owns the port and polls it; the producer waits until there is one and then writes an item in each period.
with Ada.Real_Time; use Ada.Real_Time;
with Bulkhead.Console;
with Bulkhead.Ports; use Bulkhead.Ports;
with Interfaces; use Interfaces;
package body Pair is

   type Item is record
      Number : Unsigned_64;
      Square : Unsigned_64;
   end record;
   Item_Size : constant Unsigned_32 := Item'Size / 8;

   --  What survives the jobs of a task is declared here: nothing is on the stack behind `delay until`.
   In_Port         : aliased Sampling_Port (0);
   In_SP           : SP_Id;
   Received        : Item;
   Success, Is_New : Boolean;
   Next_Poll       : Time := Clock;

   task body Consumer is
   begin
      In_SP := Init_Sampling_Port (In_Port'Access, Item_Size);
      loop
         loop
            Read_Sampling_Port (In_SP, Received'Address, Item_Size, Success, Is_New);
            if not Success then
               Bulkhead.Console.Put_Line ("no item came in");
            end if;
            exit when Is_New;
            Next_Poll := Next_Poll + Milliseconds (Bulkhead.Period);
            delay until Next_Poll;
         end loop;
         Bulkhead.Flow_End (Received.Number);
         if Received.Square = Received.Number * Received.Number then
            Bulkhead.Console.Put_Line ("item ", Long_Long_Integer (Received.Number));
         else
            Bulkhead.Console.Put_Line ("broken item ", Long_Long_Integer (Received.Number));
         end if;
      end loop;
   end Consumer;

   Out_Port        : aliased Sampling_Port (0);
   Out_SP          : SP_Id;
   Sent            : Item := (0, 0);
   Next_Activation : Time := Clock;

   task body Producer is
   begin
      loop
         Out_SP := Get_Sampling_Port (Out_Port'Access, Item_Size);
         exit when Out_SP /= Null_SP_Id;
         Next_Activation := Next_Activation + Milliseconds (1);
         delay until Next_Activation;
      end loop;
      loop
         Sent.Number := Sent.Number + 1;
         Sent.Square := Sent.Number * Sent.Number;
         Bulkhead.Flow_Begin (Sent.Number);
         if not Write_Sampling_Port (Out_SP, Sent'Address, Item_Size) then
            Bulkhead.Console.Put_Line ("no item went out");
         end if;
         Next_Activation := Next_Activation + Milliseconds (Bulkhead.Period);
         delay until Next_Activation;
      end loop;
   end Producer;

end Pair;
