#!/bin/bash
# Tests that the driver finds planted errors under both sanitizers and prints
# how to repeat the failing input; that command and the file fail in the same
# way.
set -u
target=tools/fuzz/planted_overflow_test
export BUILD_WORKING_DIRECTORY=$TEST_TMPDIR
log=$TEST_TMPDIR/log

fail() {
  echo "FAILED: $1"
  cat "$log"
  exit 1
}

# expect ERROR ARGUMENT...: the target fails with ERROR in what it prints.
expect() {
  local error=$1
  shift
  if "$target" "$@" > "$log" 2>&1; then fail "no failure found: $*"; fi
  grep -q -- "$error" "$log" || fail "no $error: $*"
}

printf O > "$TEST_TMPDIR/overflow"
printf U > "$TEST_TMPDIR/undefined"
printf X > "$TEST_TMPDIR/harmless"
expect heap-buffer-overflow "$TEST_TMPDIR/overflow"
expect 'signed integer overflow' "$TEST_TMPDIR/undefined"
"$target" "$TEST_TMPDIR/harmless" > "$log" 2>&1 || fail "harmless input"
"$target" --runs=2 > "$log" 2>&1 || fail "the seeds alone"

"$target" "$TEST_TMPDIR/harmless" --runs=2 > "$log" 2>&1 || fail "both"
grep -q '2 inputs from 0 on' "$log" || fail "no inputs behind the file"
expect heap-buffer-overflow "$TEST_TMPDIR/overflow" --runs=2

# By mutation.
expect 'Run it again: bazel run' --runs=100000
again=$(sed -n 's/^Run it again: .* -- //p' "$log")
input=$(sed -n 's/^Input .* written to \(.*\)$/\1/p' "$log")
error=$(grep -o -m 1 'heap-buffer-overflow\|signed integer overflow' "$log")
[[ -n $error ]] || fail "no error named"
# shellcheck disable=SC2086
expect "$error" $again
expect "$error" "$input"
