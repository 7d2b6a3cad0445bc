#!/bin/bash
# Tests which records tools/measure_gpu.sh makes, with a bundle that only writes
# down how it was called, and that a failing run leaves the previous record.
set -u
bundle=$TEST_TMPDIR/bundle
out=$TEST_TMPDIR/out
mkdir -p "$bundle" "$out"
cat >"$bundle/convlab" <<'END'
#!/bin/sh
# The last argument names the record.
command="$*"
for file; do :; done
echo "${command% *}" >"$file"
case $command in *"${FAIL:-none of them}"*) exit 1 ;; esac
END
chmod +x "$bundle/convlab"

failed=0
# expect WHAT EXPECTED FOUND
expect() {
  [ "$2" = "$3" ] || {
    failed=1
    echo "$1: expected '$2', found '$3'"
  }
}
names() {
  find "$out" -mindepth 1 ! -name '*.txt' -printf '%f\n' | LC_ALL=C sort | paste -s -d ' '
}
measure() { tools/measure_gpu.sh "$bundle" "$out" "$@" >"$TEST_TMPDIR/log" 2>&1; }

measure --only 'bench-*' --weights_dir w
expect "status" 0 $?
expect "records" "bench-accuracy.json bench-fp16.json bench-fp32.json bench-neighbours.json bench-small.json bench-tf32.json" "$(names)"
expect "bench-fp32" "bench --device gpu --class fp32 --seconds 2 --json" "$(cat "$out/bench-fp32.json")"

echo before >"$out/bench-small.json"
FAIL='--batch 1,' measure --only 'bench-*'
expect "status of a failure" 1 $?
expect "a record whose run failed" before "$(cat "$out/bench-small.json")"
expect "what it left" "bench-accuracy.json bench-fp16.json bench-fp32.json bench-neighbours.json bench-small.json bench-small.json.part bench-tf32.json" "$(names)"
measure --only bench-small
expect "records after it" "bench-accuracy.json bench-fp16.json bench-fp32.json bench-neighbours.json bench-small.json bench-tf32.json" "$(names)"

rm "$out"/*.json
measure --weights_dir w --only 'final-fa19*'
expect "records" "final-fa19-traced.json final-fa19.json" "$(names)"
expect "final-fa19" "final fa19 --device gpu --repeat 5 --weights_dir w --record" "$(cat "$out/final-fa19.json")"

rm "$out"/*.json
measure
expect "status" 0 $?
# Of each network 7, of fa19 8 more, the benchmark's 7.
expect "number of records" 50 "$(names | wc -w)"

measure --only nothing
expect "status without a record" 2 $?
expect "what is said" "measure_gpu.sh: no record's name is like 'nothing'" "$(cat "$TEST_TMPDIR/log")"
measure --only
expect "status without a pattern" 2 $?
exit $failed
