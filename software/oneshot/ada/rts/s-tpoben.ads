--  Protected objects with several entries, or with entries that have parameters; one task waits at each.
package System.Tasking.Protected_Objects.Entries with Preelaborate is

   subtype Positive_Protected_Entry_Index is
     Protected_Entry_Index range Protected_Entry_Index'First + 1 .. Protected_Entry_Index'Last;

   type Find_Body_Index_Access is access
     function (O : Address; E : Protected_Entry_Index) return Protected_Entry_Index;

   type Protected_Entry_Body_Array is array (Positive_Protected_Entry_Index range <>) of Entry_Body;
   type Protected_Entry_Body_Access is access constant Protected_Entry_Body_Array;

   --  One caller at each entry is all that the profile allows.
   type Protected_Entry_Queue_Max_Array is array (Positive_Protected_Entry_Index range <>) of Natural;
   type Protected_Entry_Queue_Max_Access is access constant Protected_Entry_Queue_Max_Array;

   --  Who waits at an entry, and where its parameters are in its frame, which is kept.
   type Call is record
      Caller     : Address := Null_Address;
      Parameters : Address := Null_Address;
   end record;
   type Calls is array (Protected_Entry_Index range <>) of Call;

   type Protection_Entries (Num_Entries : Protected_Entry_Index) is limited record
      Common          : aliased Protection;
      Compiler_Info   : Address;
      Entry_Bodies    : Protected_Entry_Body_Access;
      Find_Body_Index : Find_Body_Index_Access;
      Waiting         : Calls (1 .. Num_Entries);
   end record;
   type Protection_Entries_Access is access all Protection_Entries;

   procedure Initialize_Protection_Entries
     (Object            : Protection_Entries_Access;
      Ceiling_Priority  : Integer;
      Compiler_Info     : Address;
      Entry_Queue_Maxes : Protected_Entry_Queue_Max_Access;
      Entry_Bodies      : Protected_Entry_Body_Access;
      Find_Body_Index   : Find_Body_Index_Access);

   procedure Lock_Entries (Object : Protection_Entries_Access) with Inline_Always;
   procedure Lock_Read_Only_Entries (Object : Protection_Entries_Access) renames Lock_Entries;
   procedure Unlock_Entries (Object : Protection_Entries_Access) with Inline_Always;

end System.Tasking.Protected_Objects.Entries;
