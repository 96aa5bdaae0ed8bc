--  A FIR filter over blocks of samples, on this many cores: `Filter` owns the work, and each `Part` is a helper on another core. The numbers are those of
--  `one-shot::parallel::filter` in Rust, so each side can be written in either language.
generic
   Cores : Positive;
package Filter_Of is
   task Filter;
   task Part;
end Filter_Of;
