with Ada.Unchecked_Conversion;
with Bulkhead.Console; use Bulkhead.Console;
with Bulkhead.Sections; use Bulkhead.Sections;
with Interfaces; use Interfaces;
package body Filter_Of is

   Block  : constant := 2048;
   Taps   : constant := 32;
   Mine   : constant Positive := Block / Cores;
   Others_Count : constant Channel := Channel (Cores - 1);

   --  Samples and results are numbers of 16 bits; slices and results travel as words.
   In_Word    : constant := 4;
   Slice_Size : constant Unsigned_32 := Unsigned_32 (2 * (Taps + Mine));
   Part_Size  : constant Unsigned_32 := Unsigned_32 (2 * Mine);

   type Numbers is array (Natural range <>) of Integer_16;
   type Words is array (Natural range <>) of Unsigned_64;

   --  The coefficients: a triangle, in units of 2 ** (-15), whose sum is below one.
   type Triangle is array (0 .. Taps - 1) of Integer_32;
   Coefficients : constant Triangle :=
     (120, 240, 360, 480, 600, 720, 840, 960, 1080, 1200, 1320, 1440, 1560, 1680, 1800, 1920,
      1920, 1800, 1680, 1560, 1440, 1320, 1200, 1080, 960, 840, 720, 600, 480, 360, 240, 120);

   --  Filters samples; the first ones only serve as history. The sum of all coefficients is below 2 ** 15, so no operation overflows.
   procedure Apply (Samples : Numbers; Results : out Numbers) with No_Inline;
   procedure Apply (Samples : Numbers; Results : out Numbers) is
      pragma Suppress (All_Checks);
      Sum : Integer_32;
   begin
      for At_Result in Results'Range loop
         Sum := 0;
         for Tap in Coefficients'Range loop
            Sum := Sum + Integer_32 (Samples (Samples'First + Taps + At_Result - Results'First - Tap)) * Coefficients (Tap);
         end loop;
         Results (At_Result) := Integer_16 ((Sum - Sum mod 2 ** 15) / 2 ** 15);
      end loop;
   end Apply;

   --  What the task keeps: the history, and a block.
   Samples : Numbers (0 .. Taps + Block - 1) := (others => 0) with Alignment => 8;
   Results : Numbers (0 .. Block - 1) := (others => 0) with Alignment => 8;
   Random  : Unsigned_64 := 1;
   Number  : Unsigned_64 := 0;
   Work    : Section (Count => Others_Count, Slices => 0, Results => 0);

   procedure Tell (What : String; Helper : Channel; Missing : Outcome) is
   begin
      case Missing is
         when Done | Not_Asked => null;  --  the first job asks no helper
         when Late => Put_Line (What, Long_Long_Integer (Helper));
         when others =>
            Put_Line (What, Long_Long_Integer (Helper));
            Put_Line ("its port fails");
      end case;
   end Tell;

   --  The next block, after the end of the last one (D. E. Knuth, The Art of Computer Programming, vol. 2, MMIX).
   procedure Sample with No_Inline;
   procedure Sample is
      As_Words : Words (0 .. (Taps + Block) / In_Word - 1) with Import, Address => Samples'Address;
   begin
      Samples (0 .. Taps - 1) := Samples (Block .. Block + Taps - 1);
      for Word in Taps / In_Word .. As_Words'Last loop
         Random := Random * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407;
         As_Words (Word) := Random;
      end loop;
      Number := Number + 1;
   end Sample;

   --  The output of a job whose parts are all there (FNV-1a over words), as a signed number.
   procedure Show with No_Inline;
   procedure Show is
      function Signed is new Ada.Unchecked_Conversion (Unsigned_64, Long_Long_Integer);
      As_Words : Words (0 .. Block / In_Word - 1) with Import, Address => Results'Address;
      Digest : Unsigned_64 := 16#CBF2_9CE4_8422_2325#;
   begin
      for Word of As_Words loop
         Digest := (Digest xor Word) * 16#0100_0000_01B3#;
      end loop;
      Put_Line ("block ", Long_Long_Integer (Number));
      Put_Line ("digest ", Signed (Digest));
   end Show;

   --  A job: nothing in it waits for the next one.
   procedure Run with No_Inline;
   procedure Run is
      Is_Whole : Boolean := True;
      Said     : Outcome;
   begin
      Sample;
      Bulkhead.Span_Begin (Number);
      Said := Start (Work);
      if Said = Done then
         for Helper in 0 .. Others_Count - 1 loop
            Said := Hand (Work, Helper, Samples (Natural (Helper + 1) * Mine)'Address, Slice_Size);
            Tell ("no slice for ", Helper, Said);
         end loop;
         Apply (Samples (0 .. Taps + Mine - 1), Results (0 .. Mine - 1));
         for Helper in 0 .. Others_Count - 1 loop
            Said := Collect (Work, Helper, Results (Natural (Helper + 1) * Mine)'Address, Part_Size);
            Is_Whole := Is_Whole and Said = Done;
            Tell ("no result of ", Helper, Said);
         end loop;
      else
         Is_Whole := False;
         Put_Line ("no section");
      end if;
      Bulkhead.Span_End (Number);
      if Is_Whole then
         Show;
      end if;
   end Run;

   task body Filter is
   begin
      loop
         Run;
         Next_Section;
      end loop;
   end Filter;

   --  What a helper keeps.
   Slice  : Numbers (0 .. Taps + Mine - 1) := (others => 0) with Alignment => 8;
   Part_Results : Numbers (0 .. Mine - 1) := (others => 0) with Alignment => 8;
   Own : Help (Slices => 0, Results => 0);

   procedure Help_Once with No_Inline;
   procedure Help_Once is
      Said : Outcome := Take (Own, Slice'Address, Slice_Size);
   begin
      Tell ("no slice came to ", 0, Said);
      if Said = Done then
         Apply (Slice, Part_Results);
         Said := Give (Own, Part_Results'Address, Part_Size);
         Tell ("no result went out of ", 0, Said);
      end if;
   end Help_Once;

   task body Part is
   begin
      loop
         Help_Once;
         Next_Section;
      end loop;
   end Part;

end Filter_Of;
