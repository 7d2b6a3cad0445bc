#!/bin/bash
# Measures what tracing costs a program, from an unpacked bundle, on a machine
# with a GPU:
#   measure_overhead.sh BUNDLE OUT [PAIRS [--weights_dir DIR]]
# Runs m3 on fa19, 10,000 images, without and with --profile, alternately, PAIRS
# times each (default 9, at least 5), and measures the whole process, including
# start-up, the end of tracing and all files. OUT gets overhead.csv with every
# time, the last run's record and trace, and overhead.txt with the output: the
# medians and their ratio. Exit status: 1 if a run failed or was not traced.
set -eu
if [ $# -lt 2 ]; then
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
bundle=$1
out=$2
pairs=${3:-9}
shift $(($# < 3 ? $# : 3))
if ! [ "$pairs" -ge 5 ] 2>/dev/null; then
  echo "measure_overhead.sh: PAIRS is '$pairs', expected a number, at least 5" >&2
  exit 2
fi
mkdir -p "$out"

# run FLAGS...: sets `ns` to the time that one run takes.
run() {
  local start
  start=$(date +%s%N)
  "$bundle/convlab" m3 fa19 10000 "$@" >"$out/m3.out" 2>"$out/m3.err" ||
    { cat "$out/m3.err" >&2; exit 1; }
  ns=$(($(date +%s%N) - start))
}
untraced() { run "$@" --record "$out/untraced.json"; }
traced() {
  rm -f "$out/trace.json"
  run "$@" --record "$out/traced.json" --profile "$out/trace.json"
  [ -f "$out/trace.json" ] || { cat "$out/m3.err" >&2; exit 1; }
}

# The first runs read files that later runs find in memory.
untraced "$@"
traced "$@"
echo "pair,untraced_ns,traced_ns" >"$out/overhead.csv"
for ((pair = 1; pair <= pairs; ++pair)); do
  # The order within pairs alternates.
  if ((pair % 2)); then
    untraced "$@"; plain=$ns
    traced "$@"; slow=$ns
  else
    traced "$@"; slow=$ns
    untraced "$@"; plain=$ns
  fi
  echo "$pair,$plain,$slow" >>"$out/overhead.csv"
done

# median COLUMN
median() {
  sed 1d "$out/overhead.csv" | cut -d, -f"$1" | sort -n |
    awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}
awk -v plain="$(median 2)" -v slow="$(median 3)" -v pairs="$pairs" 'BEGIN {
  printf "m3 fa19 10000: median of %d untraced %.3f s, traced %.3f s, %+.1f %%\n",
    pairs, plain / 1e9, slow / 1e9, 100 * (slow / plain - 1)
}' | tee "$out/overhead.txt"
rm -f "$out/m3.out" "$out/m3.err"
