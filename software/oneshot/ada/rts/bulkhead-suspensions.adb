with System.Machine_Code;
package body Bulkhead.Suspensions is
   procedure Forget is
   begin
      System.Machine_Code.Asm ("", Clobber => "s0,memory", Volatile => True);
   end Forget;
end Bulkhead.Suspensions;
