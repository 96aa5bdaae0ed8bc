--  What tasks on the one-shot RTOS use beside the language.
with Interfaces;
package Bulkhead with Preelaborate is

   --  The period of the running task in the description, in ticks of a millisecond.
   function Period return Natural with Import, Convention => C, External_Name => "bh_period";

   --  Cycles of this core.
   function Cycles return Interfaces.Unsigned_64 with Import, Convention => C, External_Name => "bh_cycles";

   --  Markers for measurements; a flow begins in one task and ends in another one, with the same number.
   procedure Flow_Begin (Number : Interfaces.Unsigned_64)
     with Import, Convention => C, External_Name => "bh_flow_begin";
   procedure Flow_End (Number : Interfaces.Unsigned_64)
     with Import, Convention => C, External_Name => "bh_flow_end";
   procedure Span_Begin (Number : Interfaces.Unsigned_64)
     with Import, Convention => C, External_Name => "bh_span_begin";
   procedure Span_End (Number : Interfaces.Unsigned_64)
     with Import, Convention => C, External_Name => "bh_span_end";

end Bulkhead;
