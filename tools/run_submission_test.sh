#!/bin/bash
# Tests tools/run_submission.sh as a user runs it, on a machine that may have no
# GPU: with a few images on the CPU, the report says what is missing.
set -u
program=tools/run_submission.sh
out="$TEST_TMPDIR/the submission"
failed=0
error() {
  echo "$1"
  failed=1
}

# expect STATUS WORDS ARGUMENTS...
expect() {
  local status=$1 words=$2 output got
  shift 2
  output=$("$program" "$@" 2>&1)
  got=$?
  if [ $got -ne "$status" ] || [[ $output != *"$words"* ]]; then
    error "submission $*: status $got, expected $status and '$words' in: $output"
  fi
}
expect 0 'MILESTONE [NETWORK]' --help
expect 2 'which milestone?'
expect 2 "unknown milestone 'm9'" m9
expect 2 'unknown flag --bogus' m1 --bogus
expect 2 '--out needs a value' m1 --out
expect 2 "--sizes is '1,x'" m1 --sizes 1,x
expect 2 "unexpected argument 'more'" m1 sp19 more
expect 2 'cannot write to /proc/none' m1 --out /proc/none

# All steps of milestone 2; those that need a GPU may fail and must not stop the
# others.
output=$("$program" m2 sp19 --sizes 10,20 --out "$out" --team 'a|b <script>' 2>&1)
for step in '[1/6] m1-sp19-cpu ' '[2/6] m1-sp19-gpu ' '[4/6] m2-sp19-10 ' \
  '[5/6] m2-sp19-20 ' '[6/6] report '; do
  [[ $output == *"$step"* ]] || error "no step '$step' in: $output"
done
[[ $output == *'m2-sp19-20           done'* ]] || error "m2 did not run: $output"
[[ $output == *'report               done'* ]] || error "no report: $output"
[ -f "$out/records/m2-sp19-10.json" ] || error "no record in $(ls -R "$out")"
grep -q 'm2 sp19 20 ' "$out/submission.md" || error "the report lacks the run"
grep -q '&lt;script>' "$out/submission.html" && error "'>' is not escaped"
grep -q 'a|b &lt;script&gt;' "$out/submission.html" || error "no team"
if [[ $output == *'m1-sp19-gpu          FAILED'* ]]; then
  grep -q 'Not measured: there is no run of the baseline on the GPU' \
    <<<"$(tr -d '*' <"$out/submission.md")" || error "the report does not say what is missing"
fi

# As bazel run starts it: through a link in another folder.
mkdir "$TEST_TMPDIR/elsewhere"
ln -s "$PWD/$program" "$TEST_TMPDIR/elsewhere/submission"
printf '#!/bin/sh\nexit 1\n' >"$TEST_TMPDIR/elsewhere/ncu"
chmod +x "$TEST_TMPDIR/elsewhere/ncu"
output=$(PATH="$TEST_TMPDIR/elsewhere:$PATH" "$TEST_TMPDIR/elsewhere/submission" \
  m4 sp19 --sizes 10 --out "$TEST_TMPDIR/m4" 2>&1)
[[ $output == *'counters '* && $output != *'status 127'* ]] ||
  error "a program is not found: $output"
exit $failed
