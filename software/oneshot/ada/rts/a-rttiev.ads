--  Timing events (Ada reference manual, D.15). The type is not tagged, because GNAT 12 refuses tagged types in this run time.
package Ada.Real_Time.Timing_Events with Preelaborate is

   --  Declared in a package: a task that sets one of a procedure stops.
   type Timing_Event is limited private;

   --  It runs in the timer's interrupt, so it neither waits nor uses floating point: the core would stop.
   type Timing_Event_Handler is access protected procedure (Event : in out Timing_Event);

   --  The handler runs at the first tick that is not before the time, or at the next one if that has passed.
   procedure Set_Handler (Event : in out Timing_Event; At_Time : Time; Handler : Timing_Event_Handler);
   procedure Set_Handler (Event : in out Timing_Event; In_Time : Time_Span; Handler : Timing_Event_Handler);
   function Current_Handler (Event : Timing_Event) return Timing_Event_Handler;
   procedure Cancel_Handler (Event : in out Timing_Event; Cancelled : out Boolean);
   function Time_Of_Event (Event : Timing_Event) return Time;

private

   --  What the kernel keeps: the first component, because the kernel passes its address to `Call_Handler`.
   type Words is array (1 .. 6) of Long_Long_Integer;
   type Timing_Event is limited record
      Private_Words : Words := (others => 0);
      --  Null: the event is clear.
      Handler       : Timing_Event_Handler;
      At_Time       : Time := Time_First;
   end record;

end Ada.Real_Time.Timing_Events;
