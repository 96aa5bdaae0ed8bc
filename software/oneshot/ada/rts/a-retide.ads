--  The compiler makes `delay until` a call of this.
package Ada.Real_Time.Delays with Preelaborate is
   procedure Delay_Until (T : Time) with Inline_Always;
end Ada.Real_Time.Delays;
