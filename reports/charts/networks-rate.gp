# Draws networks-rate.svg from networks-rate.dat: gnuplot networks-rate.gp
set encoding utf8
set terminal svg size 480,360 noenhanced font 'DejaVu Sans,13' background 'white'
set output 'networks-rate.svg'
set label 'fa19, NVIDIA H200' at screen 0.02, screen 1 left offset 0,-1 font ',14'
set tmargin at screen 0.6500
set border 3 lc rgb '#444444'
set tics nomirror out textcolor rgb '#222222'
set key at screen 0.02, screen 0.9167 left top Left reverse samplen 2
set style circle radius screen 0.008
set style fill solid noborder
set logscale xy
set xlabel 'images'
set ylabel 'throughput, million images/s'
set grid lc rgb '#dddddd'
set format x '%.0f'
set format y '%g'
set xrange [0.7692:1.3e+04]
set yrange [0.01198:16.87]
plot 'networks-rate.dat' index 0 with lines lw 2 lc rgb '#2f6db5' title 'ours, in device memory', '' index 0 with circles lc rgb '#2f6db5' notitle, 'networks-rate.dat' index 1 with lines lw 2 lc rgb '#b3342f' title 'cuDNN 9.19.0, in device memory', '' index 1 with circles lc rgb '#b3342f' notitle, 'networks-rate.dat' index 2 with lines lw 2 lc rgb '#2e7d4f' title 'ours, from host memory', '' index 2 with circles lc rgb '#2e7d4f' notitle, 'networks-rate.dat' index 3 with lines lw 2 lc rgb '#6b7480' title 'cuDNN 9.19.0, from host memory', '' index 3 with circles lc rgb '#6b7480' notitle
