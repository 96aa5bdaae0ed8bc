package body Filter_On_4 is
end Filter_On_4;
