# Draws pairs per second over connections, one line a rival.
#   data     blocks of "connections pairs/s", each with its name as the heading, in the order in which they are drawn
#   blocks   how many there are
#   output   the SVG file
set terminal svg size 860,480 font 'sans-serif,13' background '#ffffff'
set output output
set title 'Acquire and release, durable: pairs per second'
set xlabel 'connections'
set ylabel 'pairs per second'
set logscale x 2
set xrange [0.8:1300]
set yrange [0:*]
set xtics (1, 8, 16, 32, 64, 256, 1024)
set format y '%.0f'
set grid ytics linetype 1 linecolor '#cccccc'
set border 3
set tics nomirror
set key top left
plot for [i = 0:blocks - 1] data index i using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.7 title columnheader(1)
