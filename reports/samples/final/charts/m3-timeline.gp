# Draws m3-timeline.svg from m3-timeline.dat: gnuplot m3-timeline.gp
set encoding utf8
set terminal svg size 480,230 noenhanced font 'DejaVu Sans,13' background 'white'
set output 'm3-timeline.svg'
set label 'One run of m3, fa19, 10,000 images' at screen 0.02, screen 1 left offset 0,-1 font ',14'
set tmargin at screen 0.8174
set border 3 lc rgb '#444444'
set tics nomirror out textcolor rgb '#222222'
set xrange [0:266.9903]
set yrange [2.6:-0.6]
set ytics scale 0 ('API calls' 0, 'kernels' 1, 'copies' 2)
set style fill solid border
set xlabel 'time since the first API call, ms'
set grid x lc rgb '#dddddd'
plot 'm3-timeline.dat' index 0 using 1:(0):1:2:(0-0.32):(0+0.32) with boxxyerror lw 0.5 lc rgb '#6b7480' notitle, 'm3-timeline.dat' index 1 using 1:(1):1:2:(1-0.32):(1+0.32) with boxxyerror lw 0.5 lc rgb '#2f6db5' notitle, 'm3-timeline.dat' index 2 using 1:(2):1:2:(2-0.32):(2+0.32) with boxxyerror lw 0.5 lc rgb '#b3342f' notitle
