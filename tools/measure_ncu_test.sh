#!/bin/bash
# Tests that a failing measurement leaves the previous one.
set -u
mkdir -p "$TEST_TMPDIR/bin" "$TEST_TMPDIR/out"
printf '#!/bin/sh\nexit 1\n' >"$TEST_TMPDIR/bin/ncu"
chmod +x "$TEST_TMPDIR/bin/ncu"
echo before >"$TEST_TMPDIR/out/naive.csv"
PATH="$TEST_TMPDIR/bin:$PATH" tools/measure_ncu.sh "$TEST_TMPDIR" "$TEST_TMPDIR/out" fa19 naive
status=$?
if [ $status -ne 1 ] || [ "$(cat "$TEST_TMPDIR/out/naive.csv")" != before ]; then
  echo "status $status, expected 1, and naive.csv as it was"
  exit 1
fi
