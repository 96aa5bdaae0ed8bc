--  As timing.c: a timing event that sets itself again and releases a task, until the task cancels it.
package Timing is
   task Told;
end Timing;
