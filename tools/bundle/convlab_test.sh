#!/bin/bash
# Tests the bundle's commands with programs that replace the real ones.
set -u
bundle=$TEST_TMPDIR/bundle
mkdir -p "$bundle/tests" "$TEST_TMPDIR/bin"
cp tools/bundle/convlab "$bundle/convlab"

# Runs its arguments, and finds something with the tool FINDS.
cat >"$TEST_TMPDIR/bin/compute-sanitizer" <<'END'
#!/bin/sh
tool=$2
shift 4
if [ "$1" = --padding ]; then shift 2; fi
"$@"
if [ "$tool" = "${FINDS:-}" ]; then exit 9; fi
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
cp "$bundle/tests/parity_test" "$bundle/tests/layers_test"
cp "$bundle/tests/parity_test" "$bundle/tests/compiled_test"
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
# All four run, whatever one finds.
export FINDS=racecheck
expect 1 5 0
output=$(CASES=5 SKIPPED=0 "$bundle/convlab" sanitize 2>&1)
if [ "$(grep -c '^== ' <<<"$output")" -ne 4 ]; then
  echo "sanitize ends after the tool that has found something: $output"
  failed=1
fi
CASES=5 SKIPPED=0 "$bundle/convlab" sanitize synccheck || failed=1
unset FINDS

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
# Neither needs the trained weights.
for arguments in 'fa19 - --weights=w.bin' 'mine.onnx -'; do
  # shellcheck disable=SC2086
  output=$("$bundle/convlab" classify $arguments)
  got=$?
  if [ $got -ne 2 ] || [ "$output" != "classify $arguments with $bundle/data" ]; then
    echo "classify $arguments: status $got, printed '$output'"
    failed=1
  fi
done
# A program that ends before it has written its results is named, and those after
# it run.
mkdir -p "$bundle/weights"
touch "$bundle/weights/fa19.safetensors"
printf '#!/bin/sh\nseq 100\necho the weights are missing\nkill -ABRT $$\n' >"$bundle/tests/aborts_test"
printf '#!/bin/sh\nexit 0\n' >"$bundle/tests/silent_test"
chmod +x "$bundle/tests/aborts_test" "$bundle/tests/silent_test"
output=$(CASES=5 SKIPPED=1 "$bundle/convlab" test)
got=$?
for line in "aborts_test ended early, with status 134:" "the weights are missing" \
  "silent_test ended early, with status 0:" "parity_test: 4 passed, 0 failed, 1 skipped" \
  "12 passed, 2 failed, 3 skipped"; do
  if [ $got -ne 1 ] || ! grep -qx "$line" <<<"$output"; then
    echo "test: status $got, no '$line' in '$output'"
    failed=1
  fi
done

"$bundle/convlab" --help >/dev/full 2>"$TEST_TMPDIR/err"
got=$?
if [ $got -ne 1 ] || [ "$(wc -l <"$TEST_TMPDIR/err")" -ne 1 ]; then
  echo "--help on a full disk: status $got, $(cat "$TEST_TMPDIR/err")"
  failed=1
fi
# NOTICE names every package from which something is taken.
while read -r package; do
  if ! grep -qF "($package" NOTICE; then
    echo "NOTICE does not name $package"
    failed=1
  fi
done < <(sed -n 's/^ *package = "\(.*\)",$/\1/p; s/^    "\([^/]*\)",$/\1/p' third_party/system_libraries.bzl)
exit $failed
