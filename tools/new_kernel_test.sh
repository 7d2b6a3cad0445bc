#!/bin/sh
# Tests new_kernel on a copy of the table: the file and the row are there, and a
# mistake changes nothing.
set -eu

new_kernel=$PWD/tools/new_kernel.sh
root=$TEST_TMPDIR/repository
mkdir -p "$root/kernels/convolution/cpu" "$root/kernels/convolution/cuda/lessons"
cp kernels/convolution/variants.bzl "$root/kernels/convolution/variants.bzl"
chmod u+w "$root/kernels/convolution/variants.bzl"
export BUILD_WORKSPACE_DIRECTORY="$root"

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

"$new_kernel" cuda my_tiled >"$TEST_TMPDIR/out"
grep -q 'milestones:m3 -- fa19 100 --variant my_tiled' "$TEST_TMPDIR/out" || fail "no next command"
grep -q 'KernelVariant kMyTiled = {' "$root/kernels/convolution/cuda/lessons/my_tiled.cu" || fail "no variant"
"$new_kernel" cpu my2_loops >/dev/null
grep -q 'Variant kMy2Loops = {' "$root/kernels/convolution/cpu/my2_loops.cc" || fail "no variant"
diff kernels/convolution/variants.bzl "$root/kernels/convolution/variants.bzl" >"$TEST_TMPDIR/diff" && fail "no rows"
[ "$(grep -c '^> ' "$TEST_TMPDIR/diff")" -eq 2 ] || fail "not two rows: $(cat "$TEST_TMPDIR/diff")"
[ "$(grep -c '^< ' "$TEST_TMPDIR/diff")" -eq 0 ] || fail "a row was changed"

cp "$root/kernels/convolution/variants.bzl" "$TEST_TMPDIR/before"
refused() {
  words=$1
  shift
  status=0
  "$new_kernel" "$@" >/dev/null 2>"$TEST_TMPDIR/err" || status=$?
  [ "$status" -eq 2 ] || fail "$* ended with $status"
  [ "$(wc -l <"$TEST_TMPDIR/err")" -eq 1 ] || fail "$* gave not one line"
  grep -q "$words" "$TEST_TMPDIR/err" || fail "$*: $(cat "$TEST_TMPDIR/err")"
}
refused 'is there already' cuda my_tiled
refused 'no backend' gpu x
refused 'no name' cuda My-Tiled
refused 'expected cpu or cuda' cuda
cmp "$TEST_TMPDIR/before" "$root/kernels/convolution/variants.bzl" || fail "a refusal changed the table"
