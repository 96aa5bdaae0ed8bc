package body Six_Tasks is
end Six_Tasks;
