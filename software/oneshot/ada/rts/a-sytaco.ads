--  Suspension objects (Ada reference manual, D.10).
package Ada.Synchronous_Task_Control with Preelaborate is

   type Suspension_Object is limited private;

   procedure Set_True  (S : in out Suspension_Object) with Import, Convention => C, External_Name => "bh_set_true";
   procedure Set_False (S : in out Suspension_Object) with Import, Convention => C, External_Name => "bh_set_false";
   function Current_State (S : Suspension_Object) return Boolean
     with Import, Convention => C, External_Name => "bh_is_true";

   --  A second task that waits for an object stops for good.
   procedure Suspend_Until_True (S : in out Suspension_Object) with Inline_Always;

private

   --  As `bh_suspension` of the header for C.
   type Words is array (1 .. 4) of Long_Long_Integer;
   type Suspension_Object is limited record
      Private_Words : Words := (others => 0);
   end record with Convention => C;

end Ada.Synchronous_Task_Control;
