with Bulkhead.Console; use Bulkhead.Console;
with Bulkhead.Releases;
package body Buffer is

   subtype Item is Long_Long_Integer;
   type Places is array (0 .. 1) of Item;

   protected Shared is
      entry Put (One : Item);
      entry Get (One : out Item);
      entry Cleared;
   private
      Data  : Places := (0, 0);
      Count : Natural := 0;
   end Shared;

   protected body Shared is

      entry Put (One : Item) when Count < 2 is
      begin
         Data (Count) := One;
         Count := Count + 1;
      end Put;

      entry Get (One : out Item) when Count > 0 is
      begin
         One := Data (0);
         Data (0) := Data (1);
         Count := Count - 1;
      end Get;

      entry Cleared when Count = 0 is
      begin
         null;
      end Cleared;

   end Shared;

   task body Getter is
      --  In the frame: it is there again where the call goes on.
      Taken : Item;
   begin
      loop
         Shared.Get (Taken);
         Put_Line ("got ", Taken);
         Bulkhead.Releases.Wait_For_Next;
      end loop;
   end Getter;

   Items : Item := 0;

   task body Putter is
   begin
      loop
         Items := Items + 1;
         if Items mod 4 = 0 then
            Put_Line ("all are in");
            Bulkhead.Releases.Wait_For_Next;
         else
            Put_Line ("puts ", Items);
            Shared.Put (Items);
         end if;
      end loop;
   end Putter;

   task body Watcher is
   begin
      loop
         Shared.Cleared;
         Put_Line ("is empty");
         Bulkhead.Releases.Wait_For_Next;
      end loop;
   end Watcher;

end Buffer;
