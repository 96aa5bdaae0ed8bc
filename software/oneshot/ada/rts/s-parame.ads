--  What the compiler asks about stacks. All tasks of a core share one, whose size the description says.
package System.Parameters with Pure, No_Elaboration_Code_All is
   type Size_Type is range -2 ** 63 .. 2 ** 63 - 1;
   Unspecified_Size : constant Size_Type := Size_Type'First;
end System.Parameters;
