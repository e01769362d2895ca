# Processor time against the error at the end, chain of 1024 five-mass blocks to t = 2 s. Called by
# docs/images/make.sh from the root of the repository; reads precision.csv.
set terminal svg size 760,400 font "Helvetica,13" background "white"
set lmargin 12
set grid lc rgb "#dddddd"
set border 3
set datafile separator ","
set xtics nomirror
set ytics nomirror
set logscale xy
set format x "10^{%T}"
set format y "%g"
set xrange [3e-3:3e-11]
set key top left samplen 2
set xlabel "error of the state at the end, relative"
set ylabel "processor time [ms]"
data = "docs/images/precision.csv"
plot data every ::1 using (10 ** -$1):($5 / 1e3) with linespoints pt 7 ps 0.6 lw 1.5 lc rgb "#888888" title "best of SUNDIALS, as Debian has it: not optimised", \
     data every ::1 using (10 ** -$1):($4 / 1e3) with linespoints pt 7 ps 0.6 lw 1.5 lc rgb "#c55a11" title "best of SUNDIALS, vector loops optimised", \
     data every ::1 using (10 ** -$1):($3 / 1e3) with linespoints pt 7 ps 0.6 lw 1.5 lc rgb "#548235" title "portwave, steps that choose their size", \
     data every ::1 using (10 ** -$1):($2 / 1e3) with linespoints pt 7 ps 0.6 lw 1.5 lc rgb "#1f4e79" title "portwave, equal steps"
