#!/bin/bash
# Makes the CPU's records in reports/measured/cpu, from which the README's tables
# are generated: bazel run //reports:readme. Run it on a quiet machine, from a
# committed work tree.
set -eu
case ${1-} in
  "") ;;
  -h | --help)
    echo "Usage: tools/measure_cpu.sh"
    sed -n '2,4s/^# //p' "$0"
    exit
    ;;
  *)
    echo "tools/measure_cpu.sh: unknown argument '$1'; --help tells what it does" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."
folder=$PWD/reports/measured/cpu
mkdir -p "$folder"
bazel build //milestones:m2 //milestones:final

for variant in naive naive_parallel im2col_eigen blocked vectorized \
  register_tiled dense_lanes; do
  bazel run //milestones:m2 -- fa19 1000 --device cpu --repeat 3 \
    --variant $variant --record "$folder/m2-fa19-1000-$variant.json"
done
for network in fa17-high fa17-low fa18 sp19 sp19-baseline fa19 fa20; do
  bazel run //milestones:final -- $network --device cpu \
    --record "$folder/final-$network.json"
done
