--  A periodic task as the paper's for Table 3: it puts a line on the console, sets a flag, computes its next activation and delays until then.
generic
   Line : String;
package Periodic is
   task Worker;
end Periodic;
