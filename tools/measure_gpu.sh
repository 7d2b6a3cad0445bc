#!/bin/sh
# Makes the GPU's records from an unpacked bundle, on a machine with a GPU:
#   measure_gpu.sh BUNDLE OUT [--only PATTERN] [--weights_dir DIR]
# The records go to OUT; those for the README and the reports are committed
# under reports/measured/<machine>. PATTERN is a shell pattern of the records'
# names: 'bench-*' makes only the benchmark's. If a run fails, the previous
# record stays, and the results of the run are beside it in NAME.json.part.
set -eu
if [ $# -lt 2 ]; then
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
bundle=$1
out=$2
shift 2
only='*'
# Removes --only from the arguments; the rest is for the milestones.
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  count=$((count - 1))
  if [ "$argument" != --only ]; then
    set -- "$@" "$argument"
  elif [ "$count" -gt 0 ]; then
    only=$1
    shift
    count=$((count - 1))
  else
    echo "measure_gpu.sh: --only needs a pattern of records' names" >&2
    exit 2
  fi
done
mkdir -p "$out"
part=$(mktemp -d "$out/.part.XXXXXX")
trap 'rm -rf "$part"' EXIT

# make NAME FLAG ARGUMENTS...: one record, whose file FLAG names; a failure is
# reported and the rest continues.
failed=0
made=0
make() {
  name=$1
  flag=$2
  shift 2
  # A pattern, not a word.
  # shellcheck disable=SC2254
  case $name in
    $only) ;;
    *) return 0 ;;
  esac
  made=$((made + 1))
  echo "== $name"
  json=$out/$name.json
  rm -f "$json.part"
  if "$bundle/convlab" "$@" "$flag" "$part/$name.json" >"$out/$name.txt" 2>&1
  then
    mv "$part/$name.json" "$json"
  else
    failed=1
    [ ! -f "$part/$name.json" ] || mv "$part/$name.json" "$json.part"
    echo "$name failed:"
    tail -n 5 "$out/$name.txt"
  fi
}
# run NAME MILESTONE ARGUMENTS..., bench NAME ARGUMENTS...
run() {
  name=$1
  shift
  make "$name" --record "$@"
}
bench() {
  name=bench-$1
  shift
  make "$name" --json bench --device gpu "$@"
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

# The other records of a whole submission of one network: the CPU's convolution
# on the same machine, the ladder at every size, traced runs.
network=fa19
# traced NAME ARGUMENTS...: one record and its trace. Tables do not use its
# times.
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

# The benchmark: every variant and cuDNN. Two seconds are 20 samples of the
# slowest variant; many more of the others would gain little.
bench fp32 --class fp32 --seconds 2
bench fp16 --class fp16 --seconds 2
bench tf32 --class tf32 --seconds 2
bench small --class fp32 --variants final --batch 1,100,1000 --seconds 2
bench accuracy --accuracy --class fp32,fp32-normwise
bench neighbours --variants final --neighbours --nopeers --seconds 2

# Whole networks, ours and the library's, and LeNet-5 at KernelBench's batch.
make network --json bench --device gpu --network fa18,sp19,fa19,fa20,lenet5 \
  --batch 1,10,100,1000,4096,10000 --samples 100 --seconds 0.3

if [ "$made" -eq 0 ]; then
  echo "measure_gpu.sh: no record's name is like '$only'" >&2
  exit 2
fi
exit $failed
