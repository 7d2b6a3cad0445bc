#!/bin/bash
# Tests that Python programs end with an error where standard output could not
# be written: what they print waits in a buffer until the end, or does not.
set -u
failed=0

# expect_full PROGRAM COMMAND...
expect_full() {
  local program=$1 buffering status said
  shift
  for buffering in "" 1; do
    said=$(PYTHONUNBUFFERED=$buffering "$@" 2>&1 >/dev/full)
    status=$?
    if [ $status -ne 1 ] || [ "$said" != "$program: cannot write standard output" ]; then
      failed=1
      echo "$* on a full disk, unbuffered '$buffering': status $status; said: $said"
    fi
  done
}

# expect STATUS SAID COMMAND...: where standard output can be written.
expect() {
  local wanted=$1 text=$2 status said
  shift 2
  said=$("$@" 2>&1)
  status=$?
  if [ $status -ne "$wanted" ] || [ "${said%%$'\n'*}" != "$text" ]; then
    failed=1
    echo "$*: status $status, expected $wanted; said: $said"
  fi
}

for program in tools/faults/long tools/mutants/run tools/mutants/draw; do
  expect_full $program $program --help
done
expect_full compare_pytorch.py python3 tools/compare_pytorch.py --help

# python CODE: a program whose main is CODE.
python() {
  PYTHONPATH=tools python3 -c "import sys
from run_main import run_main
def main():
  $1
run_main('program', main)"
}
expect_full program python "print('result')"
expect_full program python "sys.exit(print('result'))"
expect_full program python "print('x' * 100000, flush=True)"
expect 0 result python "print('result')"
expect 3 result python "print('result'); return 3"
expect 2 result python "print('result'); sys.exit(2)"
expect 1 "an error" python "sys.exit('an error')"
expect 1 "Traceback (most recent call last):" python "open('/nowhere/at/all')"

# An error of its own is not replaced, and a closed output is like a full one.
PYTHONUNBUFFERED='' python "print('result'); return 3" >/dev/full 2>&1
status=$?
if [ $status -ne 3 ]; then
  failed=1
  echo "an error, and a full disk: status $status"
fi
said=$(python "print('result')" 2>&1 >&-)
status=$?
if [ $status -ne 1 ] || [ "$said" != "program: cannot write standard output" ]; then
  failed=1
  echo "standard output is closed: status $status; said: $said"
fi
exit $failed
