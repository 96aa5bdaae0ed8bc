package body Filter_On_1 is
end Filter_On_1;
