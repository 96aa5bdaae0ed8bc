--  Lines on the console of this core, of at most 254 bytes.
package Bulkhead.Console with Preelaborate is
   procedure Put_Line (Line : String);
   --  With the number behind the text.
   procedure Put_Line (Line : String; Number : Long_Long_Integer);
end Bulkhead.Console;
