#!/bin/bash
# run_once as its users run it, as far as that goes without a GPU.
set -u
program=tools/counters/run_once
failed=0

# expect STATUS WORDS ARGUMENTS...: the exit status, and words in the output.
expect() {
  local status=$1 words=$2 output
  shift 2
  output=$("$program" "$@" 2>&1)
  local got=$?
  if [ $got -ne "$status" ] || [[ $output != *"$words"* ]]; then
    echo "run_once $*: status $got, expected $status and '$words' in: $output"
    failed=1
  fi
}

expect 0 'usage: run_once VARIANT' --help
expect 0 'im2col_cublas' --list
expect 2 '0 names are given'
expect 2 '3 names are given' naive fa19 fa20
expect 2 "unknown variant 'bogus'" bogus fa19
expect 2 "unknown model 'fa21'" naive fa21
expect 2 'unknown flag --sample' naive fa19 --sample 3
expect 2 'B is 0' naive fa19 --batch 0

# Without a GPU that is what is missing.
output=$("$program" naive sp19 --batch 10 2>&1)
status=$?
if [ $status -ne 0 ] && { [ $status -ne 3 ] || [[ $output != *"no NVIDIA GPU"* ]]; }; then
  echo "run_once naive: status $status: $output"
  failed=1
fi
exit $failed
