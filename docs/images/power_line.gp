# The power line: voltages at the generator and at the load, and the speed. Called by docs/images/make.sh with `run`.
set datafile separator ","
set terminal svg size 760,480 font "Helvetica,13" background "white"
set multiplot layout 2,1
set lmargin 9
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set xrange [0:0.4]
set key top right samplen 2
set ylabel "phase alpha [kV]"
plot run using "time_s":(column("park.alpha.effort")/1000) with lines lw 1.2 lc rgb "#1f4e79" title "generator", \
     run using "time_s":(-column("alpha/load.terminals.effort")/1000) with lines lw 1 lc rgb "#c55a11" title "load"
set ylabel "speed [rad/s]"
set xlabel "time [s]"
plot run using "time_s":(column("generator.momentum")/12000) with lines lw 1.5 lc rgb "#1f4e79" notitle
