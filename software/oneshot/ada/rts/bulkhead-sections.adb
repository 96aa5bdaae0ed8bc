with Bulkhead.Suspensions;
package body Bulkhead.Sections is

   use type Interfaces.Unsigned_64;

   function Begin_At
     (Begun   : System.Address;
      Helpers : System.Address;
      Count   : Interfaces.Unsigned_64;
      File    : System.Address;
      Length  : Interfaces.Unsigned_64;
      Line    : Interfaces.Unsigned_64) return Outcome
     with Import, Convention => C, External_Name => "bulkhead_ada_begin_section";
   function Hand_To
     (Begun : System.Address; Helper : Interfaces.Unsigned_64; Slice : System.Address; Size : Interfaces.Unsigned_64)
      return Outcome
     with Import, Convention => C, External_Name => "bh_hand";
   function Collect_From
     (Begun : System.Address; Helper : Interfaces.Unsigned_64; Result : System.Address; Size : Interfaces.Unsigned_64)
      return Outcome
     with Import, Convention => C, External_Name => "bh_collect";
   function Slice_At
     (Help   : System.Address;
      Slice  : System.Address;
      Size   : Interfaces.Unsigned_64;
      File   : System.Address;
      Length : Interfaces.Unsigned_64;
      Line   : Interfaces.Unsigned_64) return Outcome
     with Import, Convention => C, External_Name => "bulkhead_ada_slice";
   function Give_To (Help : System.Address; Result : System.Address; Size : Interfaces.Unsigned_64) return Outcome
     with Import, Convention => C, External_Name => "bh_give";

   function Numbers (Slices, Results : Channel) return Interfaces.Unsigned_64 is
     (Interfaces.Unsigned_64 (Results) * 2 ** 32 + Interfaces.Unsigned_64 (Slices));

   function Start
     (S    : in out Section;
      File : String   := Bulkhead.Places.File;
      Line : Positive := Bulkhead.Places.Line) return Outcome is
   begin
      --  The functions of C read them before they use the words for the first time.
      for Helper in S.Helpers'Range loop
         S.Helpers (Helper).Numbers := Numbers (S.Slices + Helper - 1, S.Results + Helper - 1);
      end loop;
      return
        Begin_At
          (S.Begun'Address, S.Helpers'Address, Interfaces.Unsigned_64 (S.Count), File'Address, File'Length,
           Interfaces.Unsigned_64 (Line));
   end Start;

   function Hand
     (S : Section; Helper : Channel; Slice : System.Address; Size : Interfaces.Unsigned_32) return Outcome is
     (Hand_To (S.Begun'Address, Interfaces.Unsigned_64 (Helper), Slice, Interfaces.Unsigned_64 (Size)));

   function Collect
     (S : Section; Helper : Channel; Result : System.Address; Size : Interfaces.Unsigned_32) return Outcome is
     (Collect_From (S.Begun'Address, Interfaces.Unsigned_64 (Helper), Result, Interfaces.Unsigned_64 (Size)));

   function Take
     (H     : in out Help;
      Slice : System.Address;
      Size  : Interfaces.Unsigned_32;
      File  : String   := Bulkhead.Places.File;
      Line  : Positive := Bulkhead.Places.Line) return Outcome is
   begin
      H.Its_Words.Numbers := Numbers (H.Slices, H.Results);
      return
        Slice_At
          (H.Its_Words'Address, Slice, Interfaces.Unsigned_64 (Size), File'Address, File'Length,
           Interfaces.Unsigned_64 (Line));
   end Take;

   function Give (H : in out Help; Result : System.Address; Size : Interfaces.Unsigned_32) return Outcome is
     (Give_To (H.Its_Words'Address, Result, Interfaces.Unsigned_64 (Size)));

   procedure Next_Section is
      --  Ends the job; the next one returns from the call.
      procedure Next with Import, Convention => C, External_Name => "bulkhead_ada_next_section";
   begin
      Next;
      Bulkhead.Suspensions.Forget;
   end Next_Section;

end Bulkhead.Sections;
