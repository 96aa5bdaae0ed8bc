--  Time (Ada reference manual, D.8): nanoseconds since the timer of the chip was zero. The clock advances by a tick of a millisecond.
package Ada.Real_Time with Preelaborate is

   type Time is private;
   Time_First : constant Time;
   Time_Last  : constant Time;
   Time_Unit  : constant := 1.0E-9;

   type Time_Span is private;
   Time_Span_First : constant Time_Span;
   Time_Span_Last  : constant Time_Span;
   Time_Span_Zero  : constant Time_Span;
   Time_Span_Unit  : constant Time_Span;

   Tick : constant Time_Span;

   function Clock return Time with Inline_Always;

   function "+" (Left : Time; Right : Time_Span) return Time with Inline_Always;
   function "+" (Left : Time_Span; Right : Time) return Time with Inline_Always;
   function "-" (Left : Time; Right : Time_Span) return Time with Inline_Always;
   function "-" (Left : Time; Right : Time) return Time_Span with Inline_Always;

   function "<"  (Left, Right : Time) return Boolean with Inline_Always;
   function "<=" (Left, Right : Time) return Boolean with Inline_Always;
   function ">"  (Left, Right : Time) return Boolean with Inline_Always;
   function ">=" (Left, Right : Time) return Boolean with Inline_Always;

   function "+"   (Left, Right : Time_Span) return Time_Span with Inline_Always;
   function "-"   (Left, Right : Time_Span) return Time_Span with Inline_Always;
   function "-"   (Right : Time_Span) return Time_Span with Inline_Always;
   function "*"   (Left : Time_Span; Right : Integer) return Time_Span with Inline_Always;
   function "*"   (Left : Integer; Right : Time_Span) return Time_Span with Inline_Always;
   function "/"   (Left, Right : Time_Span) return Integer with Inline_Always;
   function "/"   (Left : Time_Span; Right : Integer) return Time_Span with Inline_Always;

   function "<"  (Left, Right : Time_Span) return Boolean with Inline_Always;
   function "<=" (Left, Right : Time_Span) return Boolean with Inline_Always;
   function ">"  (Left, Right : Time_Span) return Boolean with Inline_Always;
   function ">=" (Left, Right : Time_Span) return Boolean with Inline_Always;

   function Nanoseconds  (NS : Integer) return Time_Span with Inline_Always;
   function Microseconds (US : Integer) return Time_Span with Inline_Always;
   function Milliseconds (MS : Integer) return Time_Span with Inline_Always;
   function Seconds      (S  : Integer) return Time_Span with Inline_Always;
   function Minutes      (M  : Integer) return Time_Span with Inline_Always;

private

   --  Nothing here overflows within 292 years.
   pragma Suppress (Overflow_Check);

   type Time is new Long_Long_Integer;
   type Time_Span is new Long_Long_Integer;

   Time_First : constant Time := Time'First;
   Time_Last  : constant Time := Time'Last;

   Time_Span_First : constant Time_Span := Time_Span'First;
   Time_Span_Last  : constant Time_Span := Time_Span'Last;
   Time_Span_Zero  : constant Time_Span := 0;
   Time_Span_Unit  : constant Time_Span := 1;

   Tick : constant Time_Span := 1_000_000;

   function Ticks return Long_Long_Integer with Import, Convention => C, External_Name => "bh_now";

   function Clock return Time is (Time (Ticks * 1_000_000));

   function "+" (Left : Time; Right : Time_Span) return Time is
     (Time (Long_Long_Integer (Left) + Long_Long_Integer (Right)));
   function "+" (Left : Time_Span; Right : Time) return Time is
     (Time (Long_Long_Integer (Left) + Long_Long_Integer (Right)));
   function "-" (Left : Time; Right : Time_Span) return Time is
     (Time (Long_Long_Integer (Left) - Long_Long_Integer (Right)));
   function "-" (Left : Time; Right : Time) return Time_Span is
     (Time_Span (Long_Long_Integer (Left) - Long_Long_Integer (Right)));

   function "<"  (Left, Right : Time) return Boolean is (Long_Long_Integer (Left) < Long_Long_Integer (Right));
   function "<=" (Left, Right : Time) return Boolean is (Long_Long_Integer (Left) <= Long_Long_Integer (Right));
   function ">"  (Left, Right : Time) return Boolean is (Long_Long_Integer (Left) > Long_Long_Integer (Right));
   function ">=" (Left, Right : Time) return Boolean is (Long_Long_Integer (Left) >= Long_Long_Integer (Right));

   function "+" (Left, Right : Time_Span) return Time_Span is
     (Time_Span (Long_Long_Integer (Left) + Long_Long_Integer (Right)));
   function "-" (Left, Right : Time_Span) return Time_Span is
     (Time_Span (Long_Long_Integer (Left) - Long_Long_Integer (Right)));
   function "-" (Right : Time_Span) return Time_Span is (Time_Span (-Long_Long_Integer (Right)));
   function "*" (Left : Time_Span; Right : Integer) return Time_Span is
     (Time_Span (Long_Long_Integer (Left) * Long_Long_Integer (Right)));
   function "*" (Left : Integer; Right : Time_Span) return Time_Span is
     (Time_Span (Long_Long_Integer (Left) * Long_Long_Integer (Right)));
   function "/" (Left, Right : Time_Span) return Integer is
     (Integer (Long_Long_Integer (Left) / Long_Long_Integer (Right)));
   function "/" (Left : Time_Span; Right : Integer) return Time_Span is
     (Time_Span (Long_Long_Integer (Left) / Long_Long_Integer (Right)));

   function "<"  (Left, Right : Time_Span) return Boolean is (Long_Long_Integer (Left) < Long_Long_Integer (Right));
   function "<=" (Left, Right : Time_Span) return Boolean is (Long_Long_Integer (Left) <= Long_Long_Integer (Right));
   function ">"  (Left, Right : Time_Span) return Boolean is (Long_Long_Integer (Left) > Long_Long_Integer (Right));
   function ">=" (Left, Right : Time_Span) return Boolean is (Long_Long_Integer (Left) >= Long_Long_Integer (Right));

   function Nanoseconds  (NS : Integer) return Time_Span is (Time_Span (NS));
   function Microseconds (US : Integer) return Time_Span is (Time_Span (Long_Long_Integer (US) * 1_000));
   function Milliseconds (MS : Integer) return Time_Span is (Time_Span (Long_Long_Integer (MS) * 1_000_000));
   function Seconds      (S  : Integer) return Time_Span is (Time_Span (Long_Long_Integer (S) * 1_000_000_000));
   function Minutes      (M  : Integer) return Time_Span is (Time_Span (Long_Long_Integer (M) * 60_000_000_000));

end Ada.Real_Time;
