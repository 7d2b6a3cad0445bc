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

Makes all runs of MILESTONE (m1, m2, m3, m4 or final) on NETWORK (default fa19),
and writes the report. A step that fails is told, and the rest goes on; the
report says what is missing. Where there is no GPU, steps that need one are left
out.

  --kernel FILE    a kernel of your own, a file or a folder, which the runs are
                   made with too: of the CPU for m2, of the GPU for m3, m4 and
                   final; once for each kernel
  --out DIR        folder to write to (default submission-MILESTONE-NETWORK),
                   which git ignores: records/, logs/, submission.md, .html,
                   .pdf and charts/
  --team NAME      name of the team
  --members A,B    names, with commas between
  --optimizations A,B
                   variants that m4 and final discuss; if not given, those that
                   gain most
  --base NAME      variant that they are compared with; if not given, each with
                   the one before
  --notes FILE     your own words, in Markdown
  --prose no, --appendix no
                   leave generated prose or the appendix out
  --sizes A,B,C    images of the timed runs (default 100,1000,10000)

Exit status: 0 done, 1 a step failed, 2 wrong usage, 3 done as far as that is
possible without a GPU.
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
      exit
      ;;
    --kernel | --out | --team | --members | --optimizations | --sizes | \
      --base | --notes | --prose | --appendix)
      [ $# -ge 2 ] || fail "$1 needs a value; --help lists flags"
      set -- "$1=$2" "${@:3}"
      continue
      ;;
    --kernel=*) kernels+=("${1#*=}") ;;
    --out=*) out=${1#*=} ;;
    --sizes=*) sizes=${1#*=} ;;
    --team=* | --members=* | --optimizations=* | --base=* | --notes=* | \
      --prose=* | --appendix=*) report_flags+=("$1") ;;
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
# What the programs would refuse is refused before the runs, in their words.
check() {
  local said status=0
  said=$("$@" --check 2>&1 >/dev/null </dev/null) || status=$?
  [ $status -eq 0 ] && return
  said=$(grep -v '^ *$' <<<"$said" | tail -n 1)
  echo "submission: ${said#submission: }" >&2
  exit $status
}
check "$report" --milestone "$milestone" "${report_flags[@]}"
run=("$program" "$milestone" "$network" "${kernels[@]/#/--kernel=}")
case $milestone in
  m1) check "${run[@]}" ;;
  m2) for size in "${sizes[@]}"; do check "${run[@]}" --size "$size"; done ;;
  *) for size in "${sizes[@]}"; do check "${run[@]}" --size "$size" --device gpu; done ;;
esac
logs=$place/logs
if ! mkdir -p "$place/records" "$logs" 2>/dev/null || [ ! -w "$place" ]; then
  fail "cannot write to $out"
fi
# Records say whether the tree was changed, so that what is written here must not
# count as a change.
[ -e "$place/.gitignore" ] || echo '*' >"$place/.gitignore"

# All steps in order, each by `step NAME COMMAND...`, which is defined twice:
# first it counts the steps, then it runs them.
timed() {
  step "$1" "$program" "${@:2}" --record "$out/records/$1.json"
}
timed_on_gpu() {
  gpu_step "$1" "$program" "${@:2}" --record "$out/records/$1.json"
}
# A traced run's times include the cost of tracing, so it is one more run.
traced() {
  gpu_step "$1-traced" "$program" "${@:2}" --record "$out/records/$1-traced.json" \
    --profile "$out/records/$1.trace.json"
}
# The same run, timed or traced, with each of the participant's kernels.
with_own() {
  local n
  for n in "${!kernels[@]}"; do
    "$1" "$2-kernel$((n + 1))" "${@:3}" --kernel "${kernels[n]}"
  done
}
ladder_steps() {
  local size
  for size in "${sizes[@]}"; do
    timed_on_gpu "m4-$network-$size" m4 "$network" "$size" "${kernels[@]/#/--kernel=}"
  done
  gpu_step counters counters
}
# A machine without ncu has a GPU all the same.
counters() {
  local status=0
  "$measure" "$bundle" "$place/records/ncu-$network" "$network" || status=$?
  [ $status -eq 3 ] || return $status
}
all_steps() {
  local size
  case $milestone in
    m1)
      timed "m1-$network-cpu" m1 "$network" --device cpu
      timed_on_gpu "m1-$network-gpu" m1 "$network" --device gpu
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
        timed_on_gpu "m3-$network-$size" m3 "$network" "$size"
        with_own timed_on_gpu "m3-$network-$size" m3 "$network" "$size"
      done
      traced "m3-$network" m3 "$network"
      with_own traced "m3-$network" m3 "$network"
      ;;
    m4) ladder_steps ;;
    final)
      ladder_steps
      timed_on_gpu "final-$network" final "$network" --device gpu --repeat 5
      with_own timed_on_gpu "final-$network" final "$network" --device gpu
      traced "final-$network" final "$network" --device gpu
      with_own traced "final-$network" final "$network" --device gpu
      ;;
  esac
  report_step "$report" --milestone "$milestone" --records "$out/records" \
    --out "$out" "${report_flags[@]}"
}

count=0 number=0 failed=0 left_out=0 width=0
step() {
  count=$((count + 1))
  [ ${#1} -le "$width" ] || width=${#1}
}
gpu_step() { step "$@"; }
report_step() { step report; }
all_steps

# announce NAME
announce() {
  number=$((number + 1))
  printf '[%*d/%d] %-*s ' "${#count}" "$number" "$count" "$width" "$1"
}
step() {
  local name=$1 started=$SECONDS status=0
  local log=$logs/$name.log
  shift
  announce "$name"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ $status -eq 0 ]; then
    echo "done, $((SECONDS - started)) s"
    # Messages of a successful step: counters are not permitted, or the report
    # is incomplete.
    grep -hE '^(measure_ncu.sh|submission): ' "$log" | sed 's/^/    /'
  elif [ $status -eq 3 ]; then
    left_out=$((left_out + 1))
    echo "left out: $(grep -v '^ *$' "$log" | tail -n 1)"
  else
    failed=$((failed + 1))
    echo "FAILED, status $status: $(grep -v '^ *$' "$log" | tail -n 1)"
  fi
}
# The first that finds no GPU says so for all.
gpu_step() {
  if [ $left_out -eq 0 ]; then
    step "$@"
    return
  fi
  left_out=$((left_out + 1))
  announce "$1"
  echo 'left out'
}
# The records need not be made again for a report that failed.
say_report_command() {
  local program=$report
  [ "$bundle" != "$scratch" ] || program='bazel run //reports:submission --'
  echo '    once that is mended, this makes the report from the records:'
  echo "    $program$(printf ' %q' "$@")"
}
# Without a run there is nothing to report.
report_step() {
  local before=$failed
  if [ $left_out -eq 0 ] || compgen -G "$place/records/*.json" >/dev/null; then
    step report "$@"
    [ $failed -eq "$before" ] || say_report_command "${@:2}"
    return
  fi
  left_out=$((left_out + 1))
  announce report
  echo 'left out: nothing was measured'
}
all_steps
if [ $failed -gt 0 ]; then
  echo "submission: $failed of $count steps failed; $logs has what they said" >&2
fi
if [ $left_out -gt 0 ]; then
  echo "submission: without a GPU, $left_out of $count steps were left out$(
    [ ! -f "$place/submission.html" ] || echo '; the report names their commands'
  )" >&2
fi
[ ! -f "$place/submission.html" ] || echo "$out/submission.html"
[ $failed -eq 0 ] || exit 1
[ $left_out -eq 0 ] || exit 3
