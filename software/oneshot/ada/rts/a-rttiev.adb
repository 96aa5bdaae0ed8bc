with System.Tasking.Protected_Objects;
package body Ada.Real_Time.Timing_Events is

   use System.Tasking.Protected_Objects;

   --  An event may happen between any two instructions of a job, and its handler may set other events. Locked, interrupts are masked.
   Masked : aliased Protection;

   procedure Set (Event : in out Timing_Event; Nanoseconds : Long_Long_Integer)
     with Import, Convention => C, External_Name => "bulkhead_ada_set_event";
   procedure Clear (Event : in out Timing_Event)
     with Import, Convention => C, External_Name => "bulkhead_ada_clear_event";

   --  Constraint_Error in the statement before this address.
   procedure After_Last (Behind : System.Address; Event : in out Timing_Event)
     with Import, Convention => C, External_Name => "bulkhead_ada_after_last", No_Return;
   function Return_Address (Level : Integer) return System.Address
     with Import, Convention => Intrinsic, External_Name => "__builtin_return_address";

   --  The event happens: it is clear before its handler runs.
   procedure Call_Handler (Event : in out Timing_Event)
     with Export, Convention => C, External_Name => "bulkhead_ada_call_handler";
   procedure Call_Handler (Event : in out Timing_Event) is
      Handler : constant Timing_Event_Handler := Event.Handler;
   begin
      Event.Handler := null;
      Handler.all (Event);
   end Call_Handler;

   procedure Set_Handler (Event : in out Timing_Event; At_Time : Time; Handler : Timing_Event_Handler) is
   begin
      Lock (Masked'Access);
      Event.Handler := Handler;
      Event.At_Time := At_Time;
      if Handler = null then
         Clear (Event);
      else
         Set (Event, Long_Long_Integer (At_Time));
      end if;
      Unlock (Masked'Access);
   end Set_Handler;

   procedure Set_Handler (Event : in out Timing_Event; In_Time : Time_Span; Handler : Timing_Event_Handler) is
      Now : constant Time := Clock;
   begin
      --  The sum would be a time in the past. An exception would name this line, not the caller's.
      if In_Time > Time_Last - Now then
         After_Last (Return_Address (0), Event);
      end if;
      Set_Handler (Event, Now + In_Time, Handler);
   end Set_Handler;

   function Current_Handler (Event : Timing_Event) return Timing_Event_Handler is
   begin
      Lock (Masked'Access);
      return Handler : constant Timing_Event_Handler := Event.Handler do
         Unlock (Masked'Access);
      end return;
   end Current_Handler;

   procedure Cancel_Handler (Event : in out Timing_Event; Cancelled : out Boolean) is
   begin
      Lock (Masked'Access);
      Cancelled := Event.Handler /= null;
      Event.Handler := null;
      Clear (Event);
      Unlock (Masked'Access);
   end Cancel_Handler;

   function Time_Of_Event (Event : Timing_Event) return Time is
   begin
      Lock (Masked'Access);
      return At_Time : constant Time := (if Event.Handler = null then Time_First else Event.At_Time) do
         Unlock (Masked'Access);
      end return;
   end Time_Of_Event;

end Ada.Real_Time.Timing_Events;
