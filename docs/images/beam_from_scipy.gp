# The rail: wheel and rail beneath it, and at 1 m and 2 m. From a run of examples/beam_from_scipy, called with `run`.
set datafile separator ","
set terminal svg size 760,300 font "Helvetica,13" background "white"
set lmargin 9
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set key outside right samplen 2
set ylabel "deflection [mm]"
set xlabel "time [s]"
set xrange [0:0.1]
plot run using "time_s":(1000*column("wheel.position")) with lines lw 2 lc rgb "#1f4e79" title "wheel", \
     run using "time_s":(1000*column("rail.q25001")) with lines lw 1.5 lc rgb "#c55a11" title "rail", \
     run using "time_s":(1000*column("rail.q25021")) with lines lw 1.5 lc rgb "#548235" title "1 m away", \
     run using "time_s":(1000*column("rail.q25041")) with lines lw 1.5 lc rgb "#888888" title "2 m away"
