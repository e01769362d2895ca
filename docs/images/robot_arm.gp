# The robot arm: joint angles against their paths, and the force at the wall. Called by docs/images/make.sh with `run`.
set datafile separator ","
set terminal svg size 760,480 font "Helvetica,13" background "white"
set multiplot layout 2,1
set lmargin 9
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set xrange [0:9]
set key outside right samplen 2
set ylabel "angle [rad]"
plot run every 5 using "time_s":"path_1[0]" with lines lw 1.5 dt 2 lc rgb "#888888" title "path 1", \
     run every 5 using "time_s":"path_2[0]" with lines lw 1.5 dt 2 lc rgb "#888888" title "path 2", \
     for [k=1:7] run every 3 using "time_s":sprintf("arm.angle_%d", k) with lines lw 1.3 title sprintf("joint %d", k)
set ylabel "force at the wall [N]"
set xlabel "time [s]"
plot run every 5 using "time_s":"arm.tip.effort[0]" with lines lw 1.5 lc rgb "#c55a11" notitle
