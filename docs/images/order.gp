# Error of the Duffing pair at 10 s against the step size, for one, two and three stages.
# Called by docs/images/make.sh with `folder`, where order_1.txt to order_3.txt have "h error".
set terminal svg size 760,400 font "Helvetica,13" background "white"
set lmargin 12
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror (".0025" .0025, ".005" .005, ".01" .01, ".02" .02, ".04" .04, ".08" .08)
set ytics nomirror
set logscale xy
set format y "10^{%T}"
set xrange [0.0022:0.09]
set yrange [3e-15:4]
set key bottom right samplen 2
set xlabel "step size h [s]"
set ylabel "error of the positions [m]"
plot folder."/order_1.txt" with linespoints pt 7 ps 0.6 lw 1.5 lc rgb "#c55a11" title "one stage, order 2", \
     folder."/order_2.txt" with linespoints pt 7 ps 0.6 lw 1.5 lc rgb "#1f4e79" title "two stages, order 4", \
     folder."/order_3.txt" with linespoints pt 7 ps 0.6 lw 1.5 lc rgb "#548235" title "three stages, order 6", \
     1e-10 lw 1 dt 3 lc rgb "#888888" title "what the exact positions are known to"
