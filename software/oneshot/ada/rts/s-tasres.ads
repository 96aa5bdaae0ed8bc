package System.Tasking.Restricted with Preelaborate is
end System.Tasking.Restricted;
