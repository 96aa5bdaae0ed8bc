--  Arithmetic on addresses (Ada reference manual, 13.7.1).
package System.Storage_Elements with Pure, No_Elaboration_Code_All is
   type Storage_Offset is range -2 ** 63 .. 2 ** 63 - 1;
   subtype Storage_Count is Storage_Offset range 0 .. Storage_Offset'Last;
   type Storage_Element is mod 2 ** 8 with Size => 8;
   type Storage_Array is array (Storage_Offset range <>) of aliased Storage_Element with Component_Size => 8;
   type Integer_Address is mod Memory_Size;
   function To_Address (Value : Integer_Address) return Address with Inline_Always;
   function To_Integer (Value : Address) return Integer_Address with Inline_Always;
private
   function To_Address (Value : Integer_Address) return Address is (Address (Value));
   function To_Integer (Value : Address) return Integer_Address is (Integer_Address (Value));
end System.Storage_Elements;
