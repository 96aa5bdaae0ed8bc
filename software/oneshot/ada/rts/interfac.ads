--  Integers of fixed size (Ada reference manual, B.2).
package Interfaces with Pure, No_Elaboration_Code_All is
   type Integer_8  is range -2 ** 7 .. 2 ** 7 - 1 with Size => 8;
   type Integer_16 is range -2 ** 15 .. 2 ** 15 - 1 with Size => 16;
   type Integer_32 is range -2 ** 31 .. 2 ** 31 - 1 with Size => 32;
   type Integer_64 is range -2 ** 63 .. 2 ** 63 - 1 with Size => 64;
   type Unsigned_8  is mod 2 ** 8 with Size => 8;
   type Unsigned_16 is mod 2 ** 16 with Size => 16;
   type Unsigned_32 is mod 2 ** 32 with Size => 32;
   type Unsigned_64 is mod 2 ** 64 with Size => 64;

   pragma Provide_Shift_Operators (Unsigned_8);
   pragma Provide_Shift_Operators (Unsigned_16);
   pragma Provide_Shift_Operators (Unsigned_32);
   pragma Provide_Shift_Operators (Unsigned_64);

   type IEEE_Float_32 is digits 6;
   type IEEE_Float_64 is digits 15;
end Interfaces;
