#!/bin/bash
# What check_trace says and how it ends.
set -u
program=common/record/check_trace
failed=0

# usage: expect STATUS TEXT ARGUMENT...; TEXT is part of what is printed, on
# standard output if the status is 0, otherwise on standard error in one line.
expect() {
  local status=$1 text=$2 shown
  shift 2
  $program "$@" >out 2>err
  local ended=$?
  [ "$status" -eq 0 ] && shown=out || shown=err
  if [ $ended -ne "$status" ] || ! grep -qF -- "$text" $shown ||
    { [ $shown = err ] && [ "$(wc -l <err)" -ne 1 ]; } ||
    { [ $shown = out ] && [ -s err ]; }; then
    echo "check_trace $*: status $ended, expected $status and '$text':"
    cat out err
    failed=1
  fi
}

cd "$TEST_SRCDIR/$TEST_WORKSPACE" || exit 1
program=$PWD/$program
cd "$TEST_TMPDIR" || exit 1
unset BUILD_WORKING_DIRECTORY

cat >good.json <<'TEXT'
{"traceEvents": [
  {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 2}
]}
TEXT
echo '{"traceEvents": [{"ph": "X"}]}' >bad.json

expect 0 "Usage: bazel run //common/record:check_trace" --help
expect 0 "Exit status: 0 all keep them" -h
expect 0 "good.json: 1 slices on 1 tracks and 0 arrows" good.json
expect 2 "expected the traces' files"
expect 2 "nosuch" --nosuch=1
expect 2 "bad.json" good.json bad.json
expect 2 "missing.json" missing.json

for arguments in --help good.json; do
  $program $arguments >/dev/full 2>err
  ended=$?
  if [ $ended -ne 1 ] || [ "$(cat err)" != "check_trace: cannot write standard output" ]; then
    echo "check_trace $arguments >/dev/full: status $ended: $(cat err)"
    failed=1
  fi
done
exit $failed
