package body Tellers is
end Tellers;
