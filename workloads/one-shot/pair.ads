--  A producer and a consumer on two cores of the one-shot RTOS, after the example of the M2OS-mc paper (appendix A).
package Pair is
   task Producer;
   task Consumer;
end Pair;
