# Draws final-gpu-time.svg from final-gpu-time.dat: gnuplot final-gpu-time.gp
set encoding utf8
set terminal svg size 480,266 noenhanced font 'DejaVu Sans,13' background 'white'
set output 'final-gpu-time.svg'
set label 'GPU time of final, fa19, 10,000 images' at screen 0.02, screen 1 left offset 0,-1 font ',14'
set tmargin at screen 0.8421
set border 3 lc rgb '#444444'
set tics nomirror out textcolor rgb '#222222'
set yrange [5.6:-0.6]
set style fill solid noborder
set border 2
set ytics scale 0
set xrange [0:52.76]
set xlabel 'share of the time, %'
set grid x lc rgb '#dddddd'
set border 3
plot 'final-gpu-time.dat' using (0):0:(0):2:($0-0.36):($0+0.36):ytic(1) with boxxyerror lc rgb '#2f6db5' notitle, '' using 2:0:(sprintf('%.1f', $2)) with labels left offset 0.4,0 notitle
