[0 for unique_name_0 in unique_name_1]
[(name_4 for unique_name_2 in unique_name_3) for name_4 in 0 if {0: 0 for name_4 in unique_name_4 for unique_name_5 in name_4}]
