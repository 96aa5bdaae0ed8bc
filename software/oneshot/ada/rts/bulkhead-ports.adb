package body Bulkhead.Ports is

   use type Interfaces.Integer_32;

   function Open (SP : not null SP_Id; Size : Interfaces.Unsigned_64) return Interfaces.Integer_32
     with Import, Convention => C, External_Name => "bh_open";
   function Is_Ready (SP : not null SP_Id; Size : Interfaces.Unsigned_64) return Interfaces.Integer_32
     with Import, Convention => C, External_Name => "bh_is_ready";
   function Put
     (SP : not null SP_Id; Orig : System.Address; Size : Interfaces.Unsigned_64) return Interfaces.Integer_32
     with Import, Convention => C, External_Name => "bh_put";
   function Take
     (SP : not null SP_Id; Dest : System.Address; Size : Interfaces.Unsigned_64) return Interfaces.Integer_32
     with Import, Convention => C, External_Name => "bh_take";

   function Init_Sampling_Port (SP : not null SP_Id; Size : Interfaces.Unsigned_32) return SP_Id is
     (if Open (SP, Interfaces.Unsigned_64 (Size)) > 0 then SP else Null_SP_Id);

   function Get_Sampling_Port (SP : not null SP_Id; Size : Interfaces.Unsigned_32) return SP_Id is
     (if Is_Ready (SP, Interfaces.Unsigned_64 (Size)) > 0 then SP else Null_SP_Id);

   function Write_Sampling_Port
     (SP : SP_Id; Orig : System.Address; Orig_Size : Interfaces.Unsigned_32) return Boolean is
     (SP /= Null_SP_Id and then Put (SP, Orig, Interfaces.Unsigned_64 (Orig_Size)) > 0);

   procedure Read_Sampling_Port
     (SP         : SP_Id;
      Dest       : System.Address;
      Dest_Size  : Interfaces.Unsigned_32;
      Successful : out Boolean;
      Is_New     : out Boolean)
   is
      Result : constant Interfaces.Integer_32 :=
        (if SP = Null_SP_Id then -1 else Take (SP, Dest, Interfaces.Unsigned_64 (Dest_Size)));
   begin
      Successful := Result >= 0;
      Is_New := Result > 0;
   end Read_Sampling_Port;

end Bulkhead.Ports;
