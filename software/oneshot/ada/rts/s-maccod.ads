--  Statements in assembler (Ada reference manual, 13.8), for this run time.
package System.Machine_Code with Pure, No_Elaboration_Code_All is

   type Asm_Input_Operand  is private;
   type Asm_Output_Operand is private;
   No_Input_Operands  : constant Asm_Input_Operand;
   No_Output_Operands : constant Asm_Output_Operand;

   type Asm_Insn is private;

   procedure Asm
     (Template : String;
      Outputs  : Asm_Output_Operand := No_Output_Operands;
      Inputs   : Asm_Input_Operand  := No_Input_Operands;
      Clobber  : String  := "";
      Volatile : Boolean := False)
     with Import, Convention => Intrinsic;

private
   type Asm_Input_Operand  is new Integer;
   type Asm_Output_Operand is new Integer;
   type Asm_Insn is new Integer;
   No_Input_Operands  : constant Asm_Input_Operand  := 0;
   No_Output_Operands : constant Asm_Output_Operand := 0;
end System.Machine_Code;
