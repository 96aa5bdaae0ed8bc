--  Calls of entries of objects with several entries, or whose entries have parameters.
with System.Tasking.Protected_Objects.Entries;
package System.Tasking.Protected_Objects.Operations with Preelaborate is

   --  What the compiler keeps of a call; nothing here uses it.
   type Communication_Block is limited null record;

   --  The caller's frame is kept if the call has parameters, which are in it.
   procedure Protected_Entry_Call
     (Object             : Entries.Protection_Entries_Access;
      E                  : Protected_Entry_Index;
      Uninterpreted_Data : Address;
      Mode               : Call_Modes;
      Block              : Communication_Block)
     with Inline_Always;

   --  After each change, and then unlocks: serves tasks that wait, the first open entry before others, until none is open.
   procedure Service_Entries (Object : Entries.Protection_Entries_Access);

   procedure Complete_Entry_Body (Object : Entries.Protection_Entries_Access) is null with Inline_Always;

   function Protected_Count (Object : Entries.Protection_Entries; E : Protected_Entry_Index) return Natural;

   --  For the procedure above, in the caller's text: whether its task waits. Interrupts are masked then.
   function Waits
     (Object : Entries.Protection_Entries_Access; E : Protected_Entry_Index; Parameters : Address) return Boolean;

end System.Tasking.Protected_Objects.Operations;
