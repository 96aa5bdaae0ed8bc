with Bulkhead.Console;
with Bulkhead.Ports; use Bulkhead.Ports;
with Bulkhead.Releases; use Bulkhead.Releases;
with Interfaces; use Interfaces;
package body Several is

   type Entry_Of_Log is record
      Number, Inverted, Again : Unsigned_64;
   end record;
   Size : constant Unsigned_32 := Entry_Of_Log'Size / 8;

   --  A core runs one of the tasks; each has values of its own, because nothing is on the stack behind the end of a job.
   First_Port, Second_Port, In_Port : aliased Sampling_Port (0);
   First_SP, Second_SP, In_SP       : SP_Id := Null_SP_Id;
   First_Entry                      : Entry_Of_Log := (1_000_000, 0, 0);
   Second_Entry                     : Entry_Of_Log := (2_000_000, 0, 0);
   Taken                            : Entry_Of_Log;
   Success, Is_New                  : Boolean;

   procedure Write (SP : SP_Id; Made : in out Entry_Of_Log) is
   begin
      if SP = Null_SP_Id then
         return;
      end if;
      Made.Number := Made.Number + 1;
      Made.Inverted := not Made.Number;
      Made.Again := Made.Number;
      Bulkhead.Flow_Begin (Made.Number);
      if not Write_Sampling_Port (SP, Made'Address, Size) then
         Bulkhead.Console.Put_Line ("no place for entry ", Long_Long_Integer (Made.Number));
      end if;
   end Write;

   task body First is
   begin
      loop
         if First_SP = Null_SP_Id then
            First_SP := Get_Sampling_Port (First_Port'Access, Size);
         end if;
         Write (First_SP, First_Entry);
         Wait_For_Next;
      end loop;
   end First;

   task body Second is
   begin
      loop
         if Second_SP = Null_SP_Id then
            Second_SP := Get_Sampling_Port (Second_Port'Access, Size);
         end if;
         Write (Second_SP, Second_Entry);
         Wait_For_Next;
      end loop;
   end Second;

   task body Keeper is
   begin
      In_SP := Init_Sampling_Port (In_Port'Access, Size);
      loop
         Read_Sampling_Port (In_SP, Taken'Address, Size, Success, Is_New);
         if not Success then
            Bulkhead.Console.Put_Line ("the queue failed");
         elsif Is_New then
            if Taken.Number = Taken.Again and then Taken.Number = not Taken.Inverted then
               Bulkhead.Flow_End (Taken.Number);
               Bulkhead.Console.Put_Line ("entry ", Long_Long_Integer (Taken.Number));
            else
               Bulkhead.Console.Put_Line ("parts of two entries");
            end if;
         end if;
         Wait_For_Next;
      end loop;
   end Keeper;

end Several;
