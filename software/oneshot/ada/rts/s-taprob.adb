package body System.Tasking.Protected_Objects is

   procedure Lock (Object : Protection_Access) is
   begin
      Seize (Object.Status);
   end Lock;

   procedure Unlock (Object : Protection_Access) is
   begin
      Release (Object.Status);
   end Unlock;

end System.Tasking.Protected_Objects;
