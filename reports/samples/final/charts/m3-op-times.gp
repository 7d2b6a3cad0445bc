# Draws m3-op-times.svg from m3-op-times.dat: gnuplot m3-op-times.gp
set encoding utf8
set terminal svg size 480,360 noenhanced font 'DejaVu Sans,13' background 'white'
set output 'm3-op-times.svg'
set label 'm3, fa19, naive' at screen 0.02, screen 1 left offset 0,-1 font ',14'
set tmargin at screen 0.7667
set border 3 lc rgb '#444444'
set tics nomirror out textcolor rgb '#222222'
set key at screen 0.02, screen 0.9167 left top Left reverse samplen 2
set style circle radius screen 0.008
set style fill solid noborder
set logscale xy
set xlabel 'images'
set ylabel 'op time, ms'
set grid lc rgb '#dddddd'
set format x '%.0f'
set format y '%g'
set xrange [76.92:1.3e+04]
set yrange [0.1596:52.68]
plot 'm3-op-times.dat' index 0 with lines lw 2 lc rgb '#2f6db5' title 'convolution 1', '' index 0 with circles lc rgb '#2f6db5' notitle, 'm3-op-times.dat' index 1 with lines lw 2 lc rgb '#b3342f' title 'convolution 2', '' index 1 with circles lc rgb '#b3342f' notitle
