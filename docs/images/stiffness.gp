# A capacitor that discharges through a diode, by three integrators and by short steps. Called by docs/images/make.sh
# with `conserving`, `one`, `two` and `exact`, the trajectory.csv of four runs.
set datafile separator ","
set terminal svg size 760,380 font "Helvetica,13" background "white"
set lmargin 10
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set xlabel "time [ms]"
set ylabel "voltage of the capacitor [V]"
set xrange [-0.02:2.0]
set yrange [-3.6:5.4]
set key bottom right samplen 2
plot exact using ($1*1e3):2 with lines lw 2 lc rgb "#999999" title "steps of 1 µs", \
     conserving using ($1*1e3):2 with linespoints pt 7 ps 0.5 lw 1.5 lc rgb "#c55a11" title "conserving", \
     two using ($1*1e3):2 with linespoints pt 7 ps 0.5 lw 1.5 lc rgb "#1f4e79" title "damped, two stages", \
     one using ($1*1e3):2 with linespoints pt 6 ps 0.7 lw 1.5 lc rgb "#548235" title "damped, one stage"
