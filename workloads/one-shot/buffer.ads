--  The tasks of src/buffer.rs in Ada.
package Buffer is
   task Getter with Priority => 3;
   task Putter with Priority => 2;
   task Watcher with Priority => 1;
end Buffer;
