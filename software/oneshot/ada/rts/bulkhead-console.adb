with System;
package body Bulkhead.Console is

   procedure Print (Text : System.Address; Length : Long_Long_Integer)
     with Import, Convention => C, External_Name => "bulkhead_ada_print";
   procedure Print_Number (Text : System.Address; Length : Long_Long_Integer; Number : Long_Long_Integer)
     with Import, Convention => C, External_Name => "bulkhead_ada_print_number";

   procedure Put_Line (Line : String) is
   begin
      Print (Line'Address, Line'Length);
   end Put_Line;

   procedure Put_Line (Line : String; Number : Long_Long_Integer) is
   begin
      Print_Number (Line'Address, Line'Length, Number);
   end Put_Line;

end Bulkhead.Console;
