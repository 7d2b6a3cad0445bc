#!/bin/bash
# Makes a milestone's submission on this machine: runs on the CPU and the GPU,
# at three sizes, traced, with hardware counters where they are allowed, and the
# report on them. Used by the bundle (./convlab submission) and by bazel run
# //tools:submission.
set -u

usage() {
  cat <<'END'
Usage: ./convlab submission MILESTONE [NETWORK] [flags]
       bazel run //tools:submission -- MILESTONE [NETWORK] [flags]

Makes all runs of MILESTONE (m1, m2, m3, m4 or final) and of those before it on
NETWORK (default fa19), and writes the report. A step that fails is told, and the
rest goes on; the report says what is missing.

  --kernel FILE    a kernel of your own, which the runs of m2 (.cc, .cpp, .h) or
                   of m3, m4 and final (.cu, .cuh, .so, a folder) are made with
                   too; once for each kernel
  --out DIR        folder to write to (default submission-MILESTONE-NETWORK):
                   records/, logs/, submission.md, .html, .pdf and charts/
  --team NAME      name of the team
  --members A,B    names, with commas between
  --optimizations A,B
                   variants that m4 and final discuss; all if not given
  --sizes A,B,C    images of the timed runs (default 100,1000,10000)

Exit status: 0 done, 1 a step failed, 2 wrong usage.
END
}

fail() {
  echo "submission: $1" >&2
  exit 2
}

milestone='' network='' out='' sizes=100,1000,10000
report_flags=() kernels=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --kernel | --out | --team | --members | --optimizations | --sizes)
      [ $# -ge 2 ] || fail "$1 needs a value; --help lists flags"
      set -- "$1=$2" "${@:3}"
      continue
      ;;
    --kernel=*) kernels+=("${1#*=}") ;;
    --out=*) out=${1#*=} ;;
    --sizes=*) sizes=${1#*=} ;;
    --team=* | --members=* | --optimizations=*) report_flags+=("$1") ;;
    -*) fail "unknown flag $1; --help lists flags" ;;
    *)
      if [ -z "$milestone" ]; then
        milestone=$1
      elif [ -z "$network" ]; then
        network=$1
      else
        fail "unexpected argument '$1', expected MILESTONE [NETWORK]"
      fi
      ;;
  esac
  shift
done
case $milestone in
  m1 | m2 | m3 | m4 | final) ;;
  '') fail "which milestone? Expected m1, m2, m3, m4 or final" ;;
  *) fail "unknown milestone '$milestone', expected m1, m2, m3, m4 or final" ;;
esac
network=${network:-fa19}
[[ $sizes =~ ^[0-9]+(,[0-9]+)*$ ]] || fail "--sizes is '$sizes', expected numbers of images with commas between"
IFS=, read -ra sizes <<<"$sizes"
for kernel in "${kernels[@]}"; do
  case $kernel in /*) path=$kernel ;; *) path=${BUILD_WORKING_DIRECTORY:-$PWD}/$kernel ;; esac
  [ -e "$path" ] || fail "--kernel is '$kernel', but there is no such file or folder"
done
# The folder as the user named it, so that the commands in the report are the
# user's, and its absolute path.
out=${out:-submission-$milestone-$network}
out=${out%/}
case $out in
  /*) place=$out ;;
  *) place=${BUILD_WORKING_DIRECTORY:-$PWD}/$out ;;
esac

# Where the programs are: in the bundle, or where Bazel puts a program's data.
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -x "$here/../bin/convlab" ]; then
  bundle=$(cd "$here/.." && pwd)
  measure=$here/measure_ncu.sh
  program=$bundle/bin/convlab
  report=$bundle/bin/submission
else
  export RUNFILES_DIR="${RUNFILES_DIR:-${PWD%/*}}" # where the weights are
  measure=$PWD/tools/measure_ncu.sh
  program=$PWD/milestones/convlab
  report=$PWD/reports/submission
  # A folder that measure_ncu.sh accepts as a bundle.
  bundle=$scratch
  mkdir "$bundle/bin"
  ln -s "$PWD/tools/bench/bench" "$bundle/bin/bench"
fi
logs=$place/logs
if ! mkdir -p "$place/records" "$logs" 2>/dev/null || [ ! -w "$place" ]; then
  fail "cannot write to $out"
fi

# All steps in order, each by `step NAME COMMAND...`, which is defined twice:
# first it counts the steps, then it runs them.
timed() {
  step "$1" "$program" "${@:2}" --record "$out/records/$1.json"
}
# A traced run's times include the cost of tracing, so it is one more run.
traced() {
  step "$1-traced" "$program" "${@:2}" --record "$out/records/$1-traced.json" \
    --profile "$out/records/$1.trace.json"
}
# The participant's kernels that a milestone takes: m2 runs on the CPU.
kernels_of() {
  local kernel device
  own=()
  for kernel in "${kernels[@]}"; do
    case $kernel in
      *.cc | *.cpp | *.h) device=cpu ;;
      *) device=gpu ;;
    esac
    if [ $device = "$([ "$1" = m2 ] && echo cpu || echo gpu)" ]; then own+=("$kernel"); fi
  done
}
# The same run, timed or traced, with each of them.
with_own() {
  local n
  kernels_of "$3"
  for n in "${!own[@]}"; do
    "$1" "$2-kernel$((n + 1))" "${@:3}" --kernel "${own[n]}"
  done
}
all_steps() {
  local part size
  for part in m1 m2 m3 m4 final; do
    case $part in
      m1)
        timed "m1-$network-cpu" m1 "$network" --device cpu
        timed "m1-$network-gpu" m1 "$network" --device gpu
        traced "m1-$network" m1 "$network" --device gpu
        ;;
      m2)
        for size in "${sizes[@]}"; do
          timed "m2-$network-$size" m2 "$network" "$size"
          with_own timed "m2-$network-$size" m2 "$network" "$size"
        done
        ;;
      m3)
        for size in "${sizes[@]}"; do
          timed "m3-$network-$size" m3 "$network" "$size"
          with_own timed "m3-$network-$size" m3 "$network" "$size"
        done
        traced "m3-$network" m3 "$network"
        with_own traced "m3-$network" m3 "$network"
        ;;
      m4)
        kernels_of m4
        for size in "${sizes[@]}"; do
          timed "m4-$network-$size" m4 "$network" "$size" "${own[@]/#/--kernel=}"
        done
        step counters "$measure" "$bundle" "$place/records/ncu-$network" "$network"
        ;;
      final)
        timed "final-$network" final "$network" --device gpu --repeat 5
        with_own timed "final-$network" final "$network" --device gpu
        traced "final-$network" final "$network" --device gpu
        with_own traced "final-$network" final "$network" --device gpu
        ;;
    esac
    [ "$part" != "$milestone" ] || break
  done
  step report "$report" --milestone "$milestone" --records "$out/records" \
    --out "$out" "${report_flags[@]}"
}

count=0 number=0 failed=0
step() { count=$((count + 1)); }
all_steps

step() {
  local name=$1 started=$SECONDS status=0
  local log=$logs/$name.log
  shift
  number=$((number + 1))
  printf '[%*d/%d] %-20s ' "${#count}" "$number" "$count" "$name"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ $status -eq 0 ]; then
    echo "done, $((SECONDS - started)) s"
    # Messages of a successful step: counters are not permitted, or the report
    # is incomplete.
    grep -hE '^(measure_ncu.sh|submission): ' "$log" | sed 's/^/    /'
  else
    failed=$((failed + 1))
    echo "FAILED, status $status: $(grep -v '^ *$' "$log" | tail -n 1)"
  fi
}
all_steps
if [ $failed -gt 0 ]; then
  echo "submission: $failed of $count steps failed; $logs has what they said" >&2
fi
[ ! -f "$place/submission.html" ] || echo "$out/submission.html"
[ $failed -eq 0 ]
