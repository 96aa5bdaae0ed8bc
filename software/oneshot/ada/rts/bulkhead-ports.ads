--  Channels of the description, as the sampling ports of the M2OS-mc paper (listing 1). A task's channels that it reads, and those that it writes, have
--  numbers in the order of the description; the description says between which cores, of which size, and whether it is a queue. Sizes are bytes.
with Interfaces;
with System;
package Bulkhead.Ports with Preelaborate is

   type SP_Index is range 0 .. 63 with Size => 64;

   --  Declared in a package: it survives the jobs of its task.
   type Sampling_Port (Index : SP_Index) is limited private;

   type SP_Id is access all Sampling_Port;
   Null_SP_Id : constant SP_Id := null;

   --  The reader makes its port ready. Null: it is already, or the description has no such channel, or another size.
   function Init_Sampling_Port (SP : not null SP_Id; Size : Interfaces.Unsigned_32) return SP_Id;

   --  The writer asks for the reader's port. Null: the reader has not made it ready, or the description has no such channel, or another size.
   function Get_Sampling_Port (SP : not null SP_Id; Size : Interfaces.Unsigned_32) return SP_Id;

   --  Writes an item over the last one, read or not, or behind those of a queue. False: there is no port, its size is another, its lock is held, or the
   --  queue is full.
   function Write_Sampling_Port
     (SP : SP_Id; Orig : System.Address; Orig_Size : Interfaces.Unsigned_32) return Boolean;

   --  Reads an item if it is new, of a queue the oldest one; otherwise the destination is as it was.
   procedure Read_Sampling_Port
     (SP         : SP_Id;
      Dest       : System.Address;
      Dest_Size  : Interfaces.Unsigned_32;
      Successful : out Boolean;
      Is_New     : out Boolean);

private

   --  As `bh_input` and `bh_output` of the header for C, which begin with the number.
   type Words is array (1 .. 8) of Interfaces.Unsigned_64;
   type Sampling_Port (Index : SP_Index) is limited record
      Others_Words : Words := (others => 0);
   end record;

end Bulkhead.Ports;
