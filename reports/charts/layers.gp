# Draws layers.svg from layers.dat: gnuplot layers.gp
set encoding utf8
set terminal svg size 480,636 noenhanced font 'DejaVu Sans,13' background 'white'
set output 'layers.svg'
set label 'Convolutions in float32, NVIDIA H200' at screen 0.02, screen 1 left offset 0,-1 font ',14'
set tmargin at screen 0.8349
set border 3 lc rgb '#444444'
set tics nomirror out textcolor rgb '#222222'
set key at screen 0.02, screen 0.9528 left top Left reverse samplen 2
set yrange [8.6:-0.6]
set style fill solid noborder
set border 2
set ytics scale 0
set datafile missing '?'
set logscale x
set xrange [0.03545:36.18]
set xlabel 'ms (logarithmic)'
set grid x lc rgb '#dddddd'
set border 3
plot 'layers.dat' using (0.03545):0:(0.03545):2:($0-0.41):($0-0.15):ytic(1) with boxxyerror lc rgb '#2f6db5' title 'ours', '' using 2:($0-0.28):(sprintf('%.3g', $2)) with labels left offset 0.4,0 font ',10' notitle, 'layers.dat' using (0.03545):0:(0.03545):3:($0-0.13):($0+0.13) with boxxyerror lc rgb '#b3342f' title 'cuDNN 9.19.0', '' using 3:($0+0.00):(sprintf('%.3g', $3)) with labels left offset 0.4,0 font ',10' notitle, 'layers.dat' using (0.03545):0:(0.03545):4:($0+0.15):($0+0.41) with boxxyerror lc rgb '#2e7d4f' title 'floor', '' using 4:($0+0.28):(sprintf('%.3g', $4)) with labels left offset 0.4,0 font ',10' notitle
