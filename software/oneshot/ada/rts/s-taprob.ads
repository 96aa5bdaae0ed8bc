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

   --  Who has locked the object, and whether interrupts were allowed before; 0: nobody.
   type Lock_Status is new Long_Long_Integer;
   type Protection is limited record
      Status : aliased Lock_Status := 0;
   end record;

   --  Masks interrupts. A task that has locked the object stops, because an operation of the object called it from outside (RM 9.5.1(17)).
   procedure Seize (Status : in out Lock_Status)
     with Import, Convention => C, External_Name => "bulkhead_ada_seize";
   --  Allows interrupts again if they were allowed before.
   procedure Release (Status : in out Lock_Status)
     with Import, Convention => C, External_Name => "bulkhead_ada_release";

end System.Tasking.Protected_Objects;
