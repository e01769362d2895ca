# The cars over a bump: body and wheel. Called by docs/images/make.sh with `run`, `body` and `wheel`.
set datafile separator ","
set terminal svg size 760,300 font "Helvetica,13" background "white"
set lmargin 9
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set key top right samplen 2
set ylabel "height [m]"
set xlabel "time [s]"
plot run using "time_s":body with lines lw 2 lc rgb "#1f4e79" title body noenhanced, \
     run using "time_s":wheel with lines lw 1.5 lc rgb "#c55a11" title wheel noenhanced
