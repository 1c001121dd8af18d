# in the form of gogui-regress; every command has an id
1 boardsize 9
2 clear_board
10 play b e5
11 play w c3
20 list_stones black
#? [E5]
30 genmove b
#? [[A-J][1-9]]
40 reg_genmove w
#? [[A-J][1-9]|pass]
50 protocol_version
#? [2]
60 known_command kata-analyze
#? [true]
70 final_score
#? [[BW]\+[0-9.]+|0]
80 cputime
#? [[0-9]+\.[0-9]+]
90 gomill-cpu_time
#? [![a-z]+]
100 undo
110 list_stones black
#? [E5]
