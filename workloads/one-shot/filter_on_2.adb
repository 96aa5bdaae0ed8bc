package body Filter_On_2 is
end Filter_On_2;
