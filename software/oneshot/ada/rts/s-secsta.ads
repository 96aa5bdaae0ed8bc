--  There is no secondary stack; the compiler wants the types.
package System.Secondary_Stack with Preelaborate is
   type SS_Stack is limited null record;
   type SS_Stack_Ptr is access all SS_Stack;
end System.Secondary_Stack;
