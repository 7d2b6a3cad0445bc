#!/bin/bash
# Tests the bundle's commands with programs that replace the real ones.
set -u
bundle=$TEST_TMPDIR/bundle
mkdir -p "$bundle/tests" "$TEST_TMPDIR/bin"
cp tools/bundle/convlab "$bundle/convlab"

# Runs its arguments.
cat >"$TEST_TMPDIR/bin/compute-sanitizer" <<'END'
#!/bin/sh
shift 4
exec "$@"
END
# Reports as many cases as CASES says, of which SKIPPED are skipped.
cat >"$bundle/tests/parity_test" <<'END'
#!/bin/bash
for argument; do file=${argument#--gtest_output=xml:}; done
{
  echo "<testsuites tests=\"$CASES\" failures=\"0\">"
  for ((i = 0; i < SKIPPED; ++i)); do echo '<testcase result="skipped" />'; done
} >"$file"
END
chmod +x "$TEST_TMPDIR/bin/compute-sanitizer" "$bundle/tests/parity_test"
export PATH="$TEST_TMPDIR/bin:$PATH"

failed=0
# expect STATUS CASES SKIPPED
expect() {
  CASES=$2 SKIPPED=$3 "$bundle/convlab" sanitize
  local got=$?
  if [ $got -ne "$1" ]; then
    echo "sanitize of $2 cases, $3 skipped: status $got, expected $1"
    failed=1
  fi
}
expect 0 5 0
expect 0 5 4
expect 3 5 5
expect 3 0 0

mkdir -p "$bundle/bin"
printf '#!/bin/sh\necho attacks "$@"\nexit 1\n' >"$bundle/bin/attacks"
chmod +x "$bundle/bin/attacks"
output=$("$bundle/convlab" attacks --device gpu gpu/late_thread)
got=$?
if [ $got -ne 1 ] || [ "$output" != "attacks --device gpu gpu/late_thread" ]; then
  echo "attacks: status $got, printed '$output'"
  failed=1
fi

# The stand-in expands what stands in single quotes.
# shellcheck disable=SC2016
printf '#!/bin/sh\necho classify "$@" with "$CONVLAB_DATA"\nexit 2\n' >"$bundle/bin/classify"
chmod +x "$bundle/bin/classify"
unset CONVLAB_DATA
output=$("$bundle/convlab" classify fa19 - --weights=w.bin)
got=$?
if [ $got -ne 2 ] || [ "$output" != "classify fa19 - --weights=w.bin with $bundle/data" ]; then
  echo "classify: status $got, printed '$output'"
  failed=1
fi
exit $failed
