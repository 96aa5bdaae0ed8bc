package Ada with Pure, No_Elaboration_Code_All is
end Ada;
