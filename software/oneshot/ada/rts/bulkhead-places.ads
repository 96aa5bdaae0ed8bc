--  Where a call is in its source, as the default of a parameter. The compiler knows these functions by their names, as those of GNAT.Source_Info, whose
--  parent gnatmake takes from the compiler's own library.
package Bulkhead.Places with Preelaborate is

   function File return String with Import, Convention => Intrinsic;
   function Line return Positive with Import, Convention => Intrinsic;

end Bulkhead.Places;
