--  Parallel sections: a task hands slices of its work to helpers on other cores and waits for their results within its job, for as long as the `wait` of its
--  description allows. Slices and results are aligned words: their sizes, in bytes, are multiples of 8, and so are their addresses. All calls return at once or
--  wait within the job; only `Next_Section` ends it.
with Bulkhead.Places;
with Interfaces;
with System;
package Bulkhead.Sections with Preelaborate is

   --  A channel of the running task, or a helper, by its number.
   type Channel is range 0 .. 63 with Size => 64;

   type Outcome is
     (Wrong_Order,  --  all slices must be handed out before the first result is awaited
      Late,         --  it did not come in the time that the description allows
      Failed,
      Closed,       --  the task on the other side has stopped for good
      Full,
      Locked,       --  another task holds the port's lock and does not release it
      Wrong_Size,   --  the description has no such channel, or its items have another size; there is no such helper
      Not_Asked,    --  the other side has not begun yet
      Done);

   --  A task that hands out work, and its helpers: each has an output for slices and an input for results. Those of the first helper have the numbers `Slices` and
   --  `Results`, those of the others follow. Declared in a package: it survives the jobs of its task.
   type Section (Count : Channel; Slices, Results : Channel) is limited private;

   --  Begins the section of this job. The first one of a task only makes its ports ready. A second one in a job stops the task, with file and line, because bounds
   --  count one wait of each job; so does one after a job that began a section and was not ended by `Next_Section`.
   function Start
     (S    : in out Section;
      File : String   := Bulkhead.Places.File;
      Line : Positive := Bulkhead.Places.Line) return Outcome;

   --  Hands a slice to a helper; the first helper is 0.
   function Hand
     (S : Section; Helper : Channel; Slice : System.Address; Size : Interfaces.Unsigned_32) return Outcome;

   --  Waits for a helper's result. If the outcome is not `Done`, the result does not change.
   function Collect
     (S : Section; Helper : Channel; Result : System.Address; Size : Interfaces.Unsigned_32) return Outcome;

   --  The other side of a helper: its input brings slices, its output takes results. Declared in a package.
   type Help (Slices, Results : Channel) is limited private;

   --  Waits for the slice of this job. A second one in a job stops the task, as above.
   function Take
     (H     : in out Help;
      Slice : System.Address;
      Size  : Interfaces.Unsigned_32;
      File  : String   := Bulkhead.Places.File;
      Line  : Positive := Bulkhead.Places.Line) return Outcome;

   --  Gives the result of the slice.
   function Give (H : in out Help; Result : System.Address; Size : Interfaces.Unsigned_32) return Outcome;

   --  Ends a job of a task in a section: the next one is released at the next multiple of the period, on all cores in the same tick.
   procedure Next_Section with Inline_Always;

private

   --  What C's functions return.
   for Outcome use
     (Wrong_Order => -7, Late => -6, Failed => -5, Closed => -4, Full => -3, Locked => -2, Wrong_Size => -1,
      Not_Asked => 0, Done => 1);
   for Outcome'Size use 32;

   --  As `bh_helper` and `bh_help` of the header for C: the first word has the numbers of both channels, until the other words are in use.
   type Rest is array (1 .. 18) of Interfaces.Unsigned_64;
   type Words is record
      Numbers : Interfaces.Unsigned_64 := 0;
      Others_Words : Rest := (others => 0);
   end record;
   type All_Words is array (Channel range <>) of Words;

   --  As `bh_section`.
   type Section_Words is array (1 .. 4) of Interfaces.Unsigned_64;

   type Section (Count : Channel; Slices, Results : Channel) is limited record
      Begun   : Section_Words := (others => 0);
      Helpers : All_Words (1 .. Count);
   end record;

   type Help (Slices, Results : Channel) is limited record
      Its_Words : Words;
   end record;

end Bulkhead.Sections;
