--  A periodic task that says its period and works for a twenty-fifth of it, as the tasks `Teller` in Rust and `teller` in C.
generic
package Teller_Of is
   task Teller;
end Teller_Of;
