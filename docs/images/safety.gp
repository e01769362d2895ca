# Energy and error of the lossless pair against the budget K: the published method, the same with the guard, and `auto`.
# Called by docs/images/make.sh with `published`, `guarded` and `automatic`, the budget.csv of three studies.
set datafile separator ","
set terminal svg size 760,560 font "Helvetica,13" background "white"
set multiplot layout 2,1
set lmargin 12
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set xrange [-0.5:50.5]
set logscale y
set format y "10^{%T}"

set yrange [0.4:*]
set ylabel "largest (H + max(T, 0)) / (H_0 + T_0)"
set key top right samplen 2
plot published using "iterations":"max_energy_ratio" with linespoints pt 7 ps 0.5 lw 1.5 lc rgb "#c55a11" title "published method", \
     guarded using "iterations":"max_energy_ratio" with linespoints pt 7 ps 0.5 lw 1.5 lc rgb "#1f4e79" title "with the guard", \
     automatic using "iterations":"max_energy_ratio" with linespoints pt 6 ps 0.5 lw 1 lc rgb "#548235" title "auto"

set yrange [1e-14:*]
set ylabel "RMS error against the\nmonolithic step [m]"
set xlabel "inner iterations K per macro-step"
plot published using "iterations":"rms" with linespoints pt 7 ps 0.5 lw 1.5 lc rgb "#c55a11" title "published method", \
     guarded using "iterations":"rms" with linespoints pt 7 ps 0.5 lw 1.5 lc rgb "#1f4e79" title "with the guard", \
     automatic using "iterations":"rms" with linespoints pt 6 ps 0.5 lw 1 lc rgb "#548235" title "auto"
