# Error and energy of the Duffing–linear pair against the budget K.
# Called by docs/images/make.sh with `data`, the table that `portwave study budget` prints.
set terminal svg size 760,520 font "Helvetica,13" background "white"
set multiplot layout 2,1
set lmargin 12
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set xrange [-0.5:50.5]

set logscale y
set format y "10^{%T}"
set ylabel "error against the\nmonolithic step [m]"
set key top right samplen 2
plot data using 1:2 with linespoints pt 7 ps 0.5 lw 1.5 lc rgb "#1f4e79" title "RMS", \
     data using 1:3 with linespoints pt 6 ps 0.5 lw 1 lc rgb "#c55a11" title "largest"

unset logscale y
set format y "%.3f"
set yrange [0.9985:*]
set xlabel "inner iterations K per macro-step"
set ylabel "largest (H + T) / (H_0 + T_0)"
set key top right
plot 1 with lines dt 2 lc rgb "#777777" title "no energy injected", \
     data using 1:8 with linespoints pt 7 ps 0.5 lw 1.5 lc rgb "#548235" title "published method"
