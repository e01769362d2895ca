# The voltage of the battery: cut off once, and with a supervisor that closes again too soon. Called by
# docs/images/make.sh with `run` and `soon`.
set datafile separator ","
set terminal svg size 760,300 font "Helvetica,13" background "white"
set lmargin 9
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set xrange [0:900]
set key top right samplen 2
set xlabel "time [s]"
set ylabel "voltage at the terminals [V]"
plot soon using "time_s":"voltage" with lines lw 1 lc rgb "#c55a11" title "closes again above 11.3 V", \
     run using "time_s":"voltage" with lines lw 1.6 lc rgb "#1f4e79" title "above 11.9 V", \
     10.8 with lines dt 2 lw 1 lc rgb "#888888" title "cut-off"
