--  Protected objects with an entry, at which one task waits.
package System.Tasking.Protected_Objects.Single_Entry with Preelaborate is

   type Protection_Entry is limited private;
   type Protection_Entry_Access is access all Protection_Entry;
   type Entry_Body_Access is access constant Entry_Body;

   procedure Initialize_Protection_Entry
     (Object           : Protection_Entry_Access;
      Ceiling_Priority : Integer;
      Compiler_Info    : Address;
      Entry_Body       : Entry_Body_Access);

   procedure Lock_Entry (Object : Protection_Entry_Access) with Inline_Always;
   procedure Lock_Read_Only_Entry (Object : Protection_Entry_Access) renames Lock_Entry;
   procedure Unlock_Entry (Object : Protection_Entry_Access) with Inline_Always;

   --  After each change, and then unlocks: serves the task that waits, if the barrier holds.
   procedure Service_Entry (Object : Protection_Entry_Access);

   --  The caller's frame is kept if the call has parameters, which are in it.
   procedure Protected_Single_Entry_Call (Object : Protection_Entry_Access; Uninterpreted_Data : Address)
     with Inline_Always;

   function Protected_Count_Entry (Object : Protection_Entry) return Natural;

   --  For the procedure above, in the caller's text: whether its task waits. Interrupts are masked then.
   function Waits (Object : Protection_Entry_Access; Parameters : Address) return Boolean;

private

   type Protection_Entry is limited record
      Common        : aliased Protection;
      Compiler_Info : Address;
      Its_Body      : Entry_Body_Access;
      Caller        : Address := Null_Address;
      Parameters    : Address := Null_Address;
   end record;

end System.Tasking.Protected_Objects.Single_Entry;
