--  What follows a call that ends a job: no register keeps its value. The compiler is told of the others by its arguments.
package Bulkhead.Suspensions with Preelaborate is
   procedure Forget with Inline_Always;
end Bulkhead.Suspensions;
