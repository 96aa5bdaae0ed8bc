--  Exceptions (Ada reference manual, 11.4.1), as far as `raise` needs them: one that no handler of its block gets stops the task.
package Ada.Exceptions with Preelaborate is

   type Exception_Id is private with Preelaborable_Initialization;
   Null_Id : constant Exception_Id;

   --  The message is the place, `FILE:LINE`, if the statement gives none.
   procedure Raise_Exception (E : Exception_Id; Message : String := "")
     with Import, Convention => Ada, External_Name => "bulkhead_ada_raise", No_Return;

private

   type Exception_Id is access all Long_Long_Integer;
   Null_Id : constant Exception_Id := null;

end Ada.Exceptions;
