# Draws ladder-fa19.svg from ladder-fa19.dat: gnuplot ladder-fa19.gp
set encoding utf8
set terminal svg size 480,645 noenhanced font 'DejaVu Sans,13' background 'white'
set output 'ladder-fa19.svg'
set label 'fa19, 10,000 images, NVIDIA H200' at screen 0.02, screen 1 left offset 0,-1 font ',14'
set tmargin at screen 0.8372
set border 3 lc rgb '#444444'
set tics nomirror out textcolor rgb '#222222'
set key at screen 0.02, screen 0.9535 left top Left reverse samplen 2
set yrange [21.6:-0.6]
set style fill solid noborder
set border 2
set ytics scale 0
set logscale x
set xrange [0.471:216.2]
set xlabel 'sum of the op times, ms (logarithmic)'
set grid x lc rgb '#dddddd'
set border 3
set style textbox opaque noborder margins 0.3,0.1
plot 'ladder-fa19.dat' using (0.471):0:(0.471):2:($0-0.36):($0+0.36):ytic(1) with boxxyerror lc rgb '#2f6db5' notitle, '+' using (10.6661):(21.6):(0):(-22.2) every ::::0 with vectors nohead lw 2 dt 2 lc rgb '#b3342f' title 'cuDNN 9.19.0: 10.7 ms', '+' using (0.8436):(21.6):(0):(-22.2) every ::::0 with vectors nohead lw 2 dt 1 lc rgb '#2e7d4f' title 'floor of fp32: 0.844 ms', '+' using (0.7535):(21.6):(0):(-22.2) every ::::0 with vectors nohead lw 2 dt 3 lc rgb '#2e7d4f' title 'floor of fp16, tf32: 0.754 ms', 'ladder-fa19.dat' using 2:0:(sprintf('%.3g', $2)) with labels left boxed offset 0.4,0 notitle
