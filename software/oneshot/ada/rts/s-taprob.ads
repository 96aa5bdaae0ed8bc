--  Protected objects without entries. Jobs do not preempt each other; handlers of interrupts wait, because interrupts are masked.
package System.Tasking.Protected_Objects with Preelaborate is

   Null_Protected_Entry : constant := Null_Entry;
   Max_Protected_Entry  : constant := Max_Entry;

   type Protected_Entry_Index is new Entry_Index range Null_Protected_Entry .. Max_Protected_Entry;

   type Barrier_Function_Pointer is access function (O : Address; E : Protected_Entry_Index) return Boolean;
   type Entry_Action_Pointer is access procedure (O : Address; P : Address; E : Protected_Entry_Index);

   type Entry_Body is record
      Barrier : Barrier_Function_Pointer;
      Action  : Entry_Action_Pointer;
   end record;

   type Protection is limited private;
   type Protection_Access is access all Protection;

   procedure Initialize_Protection (Object : Protection_Access; Ceiling_Priority : Integer) is null;

   procedure Lock (Object : Protection_Access) with Inline_Always;
   procedure Lock_Read_Only (Object : Protection_Access) renames Lock;
   procedure Unlock (Object : Protection_Access) with Inline_Always;

private

   --  Bits of the hart's status that allowed interrupts before.
   type Protection is limited record
      Status : Long_Long_Integer := 0;
   end record;

   function Mask return Long_Long_Integer with Import, Convention => C, External_Name => "bulkhead_ada_mask";
   procedure Unmask (Status : Long_Long_Integer)
     with Import, Convention => C, External_Name => "bulkhead_ada_unmask";

end System.Tasking.Protected_Objects;
