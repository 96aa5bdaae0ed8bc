package body System.Tasking.Protected_Objects is

   procedure Lock (Object : Protection_Access) is
   begin
      Object.Status := Mask;
   end Lock;

   procedure Unlock (Object : Protection_Access) is
   begin
      Unmask (Object.Status);
   end Unlock;

end System.Tasking.Protected_Objects;
