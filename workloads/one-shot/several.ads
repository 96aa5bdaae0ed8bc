--  Tasks of several cores that make entries for one log, and the task that keeps it, as the tasks of these names in Rust (src/several.rs).
package Several is
   task First;
   task Second;
   task Keeper;
end Several;
