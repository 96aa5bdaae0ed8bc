with Periodic;
package Six_Tasks with Elaborate_Body is
   package P1 is new Periodic ("task 1");
   package P2 is new Periodic ("task 2");
   package P3 is new Periodic ("task 3");
   package P4 is new Periodic ("task 4");
   package P5 is new Periodic ("task 5");
   package P6 is new Periodic ("task 6");
end Six_Tasks;
