#!/bin/sh
# Makes the GPU's records from an unpacked bundle, on a machine with a GPU:
#   measure_gpu.sh BUNDLE OUT [--weights_dir DIR]
# The records go to OUT; those that README and reports show are committed under
# reports/measured/<machine>.
set -eu
if [ $# -lt 2 ]; then
  sed -n 's/^#\( \|$\)//p' "$0" | sed 1d >&2
  exit 2
fi
bundle=$1
out=$2
shift 2
mkdir -p "$out"

# run NAME ARGUMENTS...: one record; a failure is told and the rest goes on.
failed=0
run() {
  name=$1
  shift
  echo "== $name"
  "$bundle/convlab" "$@" --record "$out/$name.json" >"$out/$name.txt" 2>&1 ||
    { failed=1; echo "$name failed:"; tail -n 5 "$out/$name.txt"; }
}

for network in fa17-high fa18 sp19 fa19 fa20; do
  run "m1-$network-cpu" m1 $network --device cpu "$@"
  run "m1-$network-gpu" m1 $network --device gpu "$@"
  for size in 100 1000 10000; do
    run "m3-$network-$size" m3 $network $size "$@"
  done
  run "m4-$network" m4 $network "$@"
  run "final-$network" final $network --device gpu --repeat 5 "$@"
done

# What a whole submission of one network needs beside these: the CPU's
# convolution on the same machine, the ladder at every size, traced runs.
network=fa19
# traced NAME ARGUMENTS...: one record and its trace. Its times are in no table.
traced() {
  name=$1
  shift
  run "$name-traced" "$@" --profile "$out/$name.trace.json"
}
for size in 100 1000 10000; do
  run "m2-$network-$size" m2 $network $size "$@"
done
for size in 100 1000; do
  run "m4-$network-$size" m4 $network $size "$@"
done
traced "m1-$network" m1 $network --device gpu "$@"
traced "m3-$network" m3 $network "$@"
traced "final-$network" final $network --device gpu "$@"
exit $failed
