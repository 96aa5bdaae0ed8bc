with Periodic;
package Two_Tasks with Elaborate_Body is
   package P1 is new Periodic ("task 1");
   package P2 is new Periodic ("task 2");
end Two_Tasks;
