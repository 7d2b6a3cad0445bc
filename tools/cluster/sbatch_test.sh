#!/bin/bash
# Runs Slurm's scripts with an srun that starts two tasks here.
set -u
cd "$(dirname "$0")" || exit 1
scripts=$PWD
cd "$TEST_TMPDIR" || exit 1
mkdir -p bin bundle
failed=0

# Its flags go to a file; its status is the highest of its tasks', as Slurm's is.
cat >bin/srun <<'END'
#!/bin/bash
while [[ $1 == -* ]]; do
  echo "$1" >>"$TEST_TMPDIR/srun.flags"
  shift
done
status=0
for task in 0 1; do
  SLURM_PROCID=$task "$@" &
done
trap 'kill $(jobs -p); exit 143' TERM
for task in $(jobs -p); do
  wait "$task"
  got=$?
  if [ $got -gt $status ]; then status=$got; fi
done
exit $status
END
# A task ends with its own of the statuses in STATUS.
cat >bundle/convlab <<'END'
#!/bin/bash
statuses=($STATUS)
status=${statuses[$SLURM_PROCID]}
if [ "$SLURM_PROCID" = 0 ]; then printf '%s\n' "$@" >"$TEST_TMPDIR/arguments"; fi
if [ "$status" = hangs ]; then exec sleep 20; fi
if [ "$status" = killed ]; then
  kill -9 $PPID # with its shell, as Slurm does
  exit 1
fi
exit "$status"
END
chmod +x bin/srun bundle/convlab
export PATH=$PWD/bin:$PATH

# expect STATUS SCRIPT ARGUMENTS...
expect() {
  local wanted=$1 got
  shift
  rm -f srun.flags arguments
  bash "$scripts/$1" "${@:2}" >out 2>&1
  got=$?
  if [ $got -ne "$wanted" ] || [ -e out.npy.status ]; then
    echo "$* of tasks that end with '$STATUS': status $got, expected $wanted:" >&2
    cat out >&2
    failed=1
  fi
}

# has FILE LINE...: the file has these lines, one after the other.
has() {
  local file=$1 lines
  shift
  lines=$(printf '%s\n' "$@")
  if [[ $'\n'$(cat "$file")$'\n' != *$'\n'$lines$'\n'* ]]; then
    echo "$file lacks the lines '$*':" >&2
    cat "$file" >&2
    failed=1
  fi
}

several=(several_nodes.sbatch "$PWD/bundle" 'part-*.idx' out.npy)
STATUS='0 0' expect 0 "${several[@]}" --tolerate 1
has arguments classify --read each --data 'part-*.idx' --out out.npy --resume \
  --record out.npy.json --tolerate 1
has srun.flags --mpi=pmix --kill-on-bad-exit=0
# What becomes of the others is rank 0's to judge.
STATUS='0 137' expect 0 "${several[@]}"
STATUS='1 0' expect 1 "${several[@]}"
STATUS='2 143' expect 2 "${several[@]}"
STATUS='killed 0' expect 1 "${several[@]}"
STATUS='0 hangs' expect 0 "${several[@]}"
STATUS='1 hangs' expect 1 "${several[@]}"
STATUS='0 0' MPI=pmi2 expect 0 "${several[@]}"
has srun.flags --mpi=pmi2
STATUS='0 0' expect 2 several_nodes.sbatch "$PWD/bundle"

one=(one_node.sbatch "$PWD/bundle" 'part-*.idx' out.npy)
STATUS='0 0' expect 0 "${one[@]}" fa18
has arguments classify --gpus all --data 'part-*.idx' --out out.npy --resume \
  --record out.npy.json fa18
STATUS='3 3' expect 3 "${one[@]}"
STATUS='0 0' expect 2 one_node.sbatch

if ! command -v nsys ncu >/dev/null; then
  STATUS='0 0' expect 1 profile.sbatch "$PWD/bundle" fa19 100
  has out 'tools/cluster/profile.sbatch: there is neither nsys nor ncu (module load cuda)'
fi
cat >bin/nsys <<'END'
#!/bin/bash
while [ "${1##*/}" != convlab ]; do shift; done
exec "$@"
END
chmod +x bin/nsys
STATUS='0 0' expect 0 profile.sbatch "$PWD/bundle" fa19 100
has arguments classify --device gpu fa19 100
exit $failed
