package body System.Tasking.Protected_Objects.Entries is

   procedure Initialize_Protection_Entries
     (Object            : Protection_Entries_Access;
      Ceiling_Priority  : Integer;
      Compiler_Info     : Address;
      Entry_Queue_Maxes : Protected_Entry_Queue_Max_Access;
      Entry_Bodies      : Protected_Entry_Body_Access;
      Find_Body_Index   : Find_Body_Index_Access)
   is
      pragma Unreferenced (Ceiling_Priority, Entry_Queue_Maxes);
   begin
      Object.Compiler_Info := Compiler_Info;
      Object.Entry_Bodies := Entry_Bodies;
      Object.Find_Body_Index := Find_Body_Index;
   end Initialize_Protection_Entries;

   procedure Lock_Entries (Object : Protection_Entries_Access) is
   begin
      Seize (Object.Common.Status);
   end Lock_Entries;

   procedure Unlock_Entries (Object : Protection_Entries_Access) is
   begin
      Release (Object.Common.Status);
   end Unlock_Entries;

end System.Tasking.Protected_Objects.Entries;
