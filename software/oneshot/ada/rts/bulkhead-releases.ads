--  Releases as the description says them.
package Bulkhead.Releases with Preelaborate is

   --  Ends the job. The next one is released a period of the description after this one; of a task that a channel with `notify` tells, by the next
   --  item, at least a period after the last release.
   procedure Wait_For_Next with Inline_Always;

end Bulkhead.Releases;
