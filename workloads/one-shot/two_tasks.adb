package body Two_Tasks is
end Two_Tasks;
