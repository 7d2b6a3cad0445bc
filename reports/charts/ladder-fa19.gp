# gnuplot ladder-fa19.gp
set terminal svg size 760,430 font 'sans-serif,13' background 'white'
set output 'ladder-fa19.svg'
set title 'fa19, 10000 images, NVIDIA H200'
set ylabel 'sum of op times, ms (logarithmic)'
set logscale y
set yrange [0.5:*]
set grid y
set border 3
set style fill solid
set boxwidth 0.7
set key top right
set xtics rotate by 40 right nomirror noenhanced
set ytics nomirror
plot 'ladder-fa19.dat' using 0:2:xtic(1) notitle with boxes lc rgb '#3060a0', '' using 0:2:(sprintf('%.3g', $2)) notitle with labels offset 0,0.6, 10.6667 title 'cuDNN 9.19.0, 10.7 ms' with lines dt 2 lw 2 lc rgb '#b03030'
