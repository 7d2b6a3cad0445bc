# Draws roofline.svg from roofline.dat: gnuplot roofline.gp
set encoding utf8
set terminal svg size 480,580 noenhanced font 'DejaVu Sans,13' background 'white'
set output 'roofline.svg'
set label 'fa19, 10,000 images, NVIDIA H200' at screen 0.02, screen 1 left offset 0,-1 font ',14'
set tmargin at screen 0.7466
set border 3 lc rgb '#444444'
set tics nomirror out textcolor rgb '#222222'
set key at screen 0.02, screen 0.9483 left top Left reverse samplen 2
set style circle radius screen 0.008
set style fill solid noborder
set logscale xy
set samples 400
set xrange [2:728]
set yrange [0.93:1583]
set xlabel 'FLOP per byte that must move'
set ylabel 'TFLOP/s'
set grid lc rgb '#e4e4e4'
set format y '%g'
plot (x*4.8<989.5?x*4.8:989.5) lw 2 dt 1 lc rgb '#2e7d4f' title 'tensor cores, one FP16 product', (x*4.8<329.8?x*4.8:329.8) lw 2 dt 3 lc rgb '#2e7d4f' title 'class fp32, three FP16 products', (x*4.8<67?x*4.8:67) lw 2 dt 2 lc rgb '#6b7480' title 'float32 units', 'roofline.dat' index 0 using 1:2 with circles lc rgb '#2f6db5' title 'convolution 1', '' index 0 using ($5==0?$1:NaN):2:3 with labels left offset 0.7,0 font ',11' textcolor rgb '#2f6db5' notitle, '' index 0 using ($5==1?$1:NaN):2:3 with labels right offset -0.7,0 font ',11' textcolor rgb '#2f6db5' notitle, '' index 0 using ($5==2?$1:NaN):2:3 with labels left offset 2.7,0 font ',11' textcolor rgb '#2f6db5' notitle, '' index 0 using ($5==3?$1:NaN):2:3 with labels right offset -2.7,0 font ',11' textcolor rgb '#2f6db5' notitle, 'roofline.dat' index 1 using 1:2 with circles lc rgb '#b3342f' title 'convolution 2', '' index 1 using ($5==0?$1:NaN):2:3 with labels left offset 0.7,0 font ',11' textcolor rgb '#b3342f' notitle, '' index 1 using ($5==1?$1:NaN):2:3 with labels right offset -0.7,0 font ',11' textcolor rgb '#b3342f' notitle, '' index 1 using ($5==2?$1:NaN):2:3 with labels left offset 2.7,0 font ',11' textcolor rgb '#b3342f' notitle, '' index 1 using ($5==3?$1:NaN):2:3 with labels right offset -2.7,0 font ',11' textcolor rgb '#b3342f' notitle
