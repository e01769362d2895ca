# The crane: position of trolley and load against the path, and the sway. Called by docs/images/make.sh with `run`.
set datafile separator ","
set terminal svg size 760,480 font "Helvetica,13" background "white"
set multiplot layout 2,1
set lmargin 9
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set xrange [0:60]
set key top right samplen 2
set ylabel "position [m]"
plot 12 with lines lw 1 dt 3 lc rgb "#888888" title "buffer", \
     run every 5 using "time_s":"path[0]" with lines lw 1.5 dt 2 lc rgb "#548235" title "path", \
     run every 5 using "time_s":"crane.position" with lines lw 2 lc rgb "#1f4e79" title "trolley", \
     run every 5 using "time_s":(column("crane.position") + 6*sin(column("crane.angle"))) with lines lw 1.2 lc rgb "#c55a11" title "load"
set ylabel "drive [kN]"
set xlabel "time [s]"
set yrange [-7:7]
plot run every 5 using "time_s":(column("drive")/1000) with lines lw 1.2 lc rgb "#1f4e79" notitle
