#!/usr/bin/env bash
# Processor time and memory of cases S and R against workers, with the exponent fitted to the larger ones. Prints the exponents.
# Usage: bench/scale-plot.sh WHOLE.csv FOLDER: writes FOLDER/scaling.svg and .png
set -euo pipefail
table=$1
out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in s r; do awk -F, -v c=$name '$1 == c && $9 !~ /fidelity/ {print $2, $3, $6}' "$table" >"$work/$name"; done
[ -s "$work/s" ] && [ -s "$work/r" ] || exit 0
gnuplot -d <<PLOT 2>&1
set fit quiet logfile '/dev/null'
as = -3.0; ns = 1.0; ar = -3.0; nr = 1.0
fs(x) = as + ns * x
fr(x) = ar + nr * x
fit [log(4000):] fs(x) '$work/s' using (log(\$1)):(log(\$2)) via as, ns
fit [log(2000):] fr(x) '$work/r' using (log(\$1)):(log(\$2)) via ar, nr
print sprintf("S: exponent %.2f from 4,096 workers on; R: %.2f from 2,048 on", ns, nr)
set logscale x 2
set logscale y 10
set xrange [48:1572864]
set yrange [0.02:100]
set xtics ('64' 64, '1,024' 1024, '16,384' 16384, '131,072' 131072, '1,048,576' 1048576)
set ytics ('0.02' 0.02, '0.1' 0.1, '0.5' 0.5, '1' 1, '5' 5, '10' 10, '50' 50)
set border 3 lc rgb '#404040' lw 0.8
set tics nomirror out scale 0.6 textcolor rgb '#202020'
set grid back lt 1 lc rgb '#E0E0E0' lw 0.8
set key top left Left reverse samplen 3
set xlabel 'workers'
do for [format in 'svg png'] {
  if (format eq 'svg') { set terminal svg size 960,472 background rgb 'white' font 'DejaVu Sans,11' }
  if (format eq 'png') { set terminal pngcairo size 1920,944 fontscale 1.8 linewidth 2 pointscale 2 font 'DejaVu Sans,11' }
  set output '$out/scaling.' . format
  set multiplot layout 1,2
  set ylabel 'processor time [s]'
  plot '$work/s' using 1:2 with linespoints pt 7 ps 0.6 lw 1.8 lc rgb '#0072B2' title sprintf('S: grows with workers^{%.2f}', ns), \
       '$work/r' using 1:2 with linespoints pt 5 ps 0.6 lw 1.8 lc rgb '#D55E00' title sprintf('R: grows with workers^{%.2f}', nr)
  set ylabel 'peak memory [GB]'
  plot '$work/s' using 1:(\$3 / 1000) with linespoints pt 7 ps 0.6 lw 1.8 lc rgb '#0072B2' title 'S', \
       '$work/r' using 1:(\$3 / 1000) with linespoints pt 5 ps 0.6 lw 1.8 lc rgb '#D55E00' title 'R'
  unset multiplot
}
PLOT
