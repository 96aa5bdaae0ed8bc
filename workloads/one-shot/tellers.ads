with Teller_Of;
package Tellers with Elaborate_Body is
   package T0 is new Teller_Of;
   package T1 is new Teller_Of;
   package T2 is new Teller_Of;
   package T3 is new Teller_Of;
   package T4 is new Teller_Of;
   package T5 is new Teller_Of;
end Tellers;
