#!/bin/bash
# Tests tools/run_submission.sh as a user runs it, on a machine that may have no
# GPU: with a few images on the CPU, the report says what is missing.
set -u
root=$PWD
program=tools/run_submission.sh
out="$TEST_TMPDIR/the submission"
failed=0
error() {
  echo "$1"
  failed=1
}

# Paper takes most of a report's time, and other tests make it.
mkdir "$TEST_TMPDIR/paper"
# shellcheck disable=SC2016
printf '#!/bin/sh\n: >"$3"\n' >"$TEST_TMPDIR/paper/weasyprint"
chmod +x "$TEST_TMPDIR/paper/weasyprint"
export PATH="$TEST_TMPDIR/paper:$PATH"

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
expect 2 "unknown model 'sp99'" m2 sp99
expect 2 'size is 0, expected at least 1' m2 --sizes 0,20
expect 2 'size is 99999, expected 1 to 10000' m4 --sizes 20,99999
# What a kernel is, its content says.
expect 2 'none.cu: no such file' m3 --kernel none.cu
mkdir "$TEST_TMPDIR/folder"
arguments='const float* x, const float* k, float* y, int B, int C, int H, int W, int M, int K'
echo "extern \"C\" void convolution($arguments) {}" | tee "$TEST_TMPDIR/one.c" >"$TEST_TMPDIR/folder/one.cc"
echo "extern \"C\" void convolution($arguments, cudaStream_t stream) {}" >"$TEST_TMPDIR/gpu.cc"
echo 'int main() {}' >"$TEST_TMPDIR/main.cc"
expect 2 "main.cc has no kernel's interface" m2 --kernel "$TEST_TMPDIR/main.cc"
expect 2 'gpu.cc runs on the GPU, but m2 is the CPU convolution' m2 --kernel "$TEST_TMPDIR/gpu.cc"
expect 2 'one.c runs on the CPU, but --device is gpu' m3 --kernel "$TEST_TMPDIR/one.c"
expect 2 "but m1 runs the framework's own convolution" m1 --kernel "$TEST_TMPDIR/one.c"
mkdir "$TEST_TMPDIR/other"
cp "$TEST_TMPDIR/one.c" "$TEST_TMPDIR/other"
expect 2 'two kernels are called one' m2 --kernel "$TEST_TMPDIR/one.c" --kernel "$TEST_TMPDIR/other/one.c"
expect 2 'none.md: No such file' m2 --notes none.md
printf '# Ours\n\nHello\n' >"$TEST_TMPDIR/notes.md"
expect 2 'notes.md: line 3: text before the first section' m2 --notes "$TEST_TMPDIR/notes.md"
expect 2 "--prose is 'maybe', expected yes or no" m2 --prose maybe
expect 2 'cannot write to /proc/none' m1 --out /proc/none

# All steps of milestone 2 and no other's, in a folder that git ignores.
output=$("$program" m2 sp19 --sizes 10,20 --out "$out" --team 'a|b <script>' 2>&1) ||
  error "m2 failed: $output"
for step in '[1/3] m2-sp19-10 ' '[2/3] m2-sp19-20 ' '[3/3] report '; do
  [[ $output == *"$step"* ]] || error "no step '$step' in: $output"
done
[[ $output == *'m2-sp19-20 done'* ]] || error "m2 did not run: $output"
[[ $output == *'report     done'* ]] || error "no report: $output"
[ -f "$out/records/m2-sp19-10.json" ] || error "no record in $(ls -R "$out")"
[ "$(cat "$out/.gitignore")" = '*' ] || error "git sees the submission"
grep -q '&lt;script>' "$out/submission.html" && error "'>' is not escaped"
grep -q 'a|b &lt;script&gt;' "$out/submission.html" || error "no team"

# check_commands REPORT RECORDS: every command of a milestone that the report
# prints gives what it shows: the same variant and the same number of correct
# answers as the record of that run. Those for a GPU are right commands: without
# one they end for that reason alone.
checked=0
check_commands() {
  local report=$1 records=$2 command words again status field shown record
  # shellcheck disable=SC2016 # the report's backticks
  grep -o '`bazel run //milestones:[a-z0-9]* -- [^`]*`' "$report" | sort -u >"$TEST_TMPDIR/commands"
  [ -s "$TEST_TMPDIR/commands" ] || error "$report prints no command"
  while IFS= read -r command; do
    # shellcheck disable=SC2016
    words=${command#'`bazel run //milestones:'}
    words=${words%'`'}
    words=${words/ -- / }
    # Not over the record that it names.
    words=$(sed -E "s/--record ('[^']*'|[^ ]*)//" <<<"$words")
    again=$TEST_TMPDIR/again.json
    status=0
    # The words are quoted for a shell.
    output=$(cd "$TEST_TMPDIR" && CUDA_VISIBLE_DEVICES='' \
      eval "'$root/milestones/convlab' $words --record '$again'" 2>&1) || status=$?
    case $status,$words in
      3,*) [[ $output == *'no NVIDIA'* ]] || error "$words: $output" ;;
      0,*)
        record=$(grep -lZ "\"size\": $(grep -m1 -o '"size": [0-9]*' "$again" | cut -c9-)," "$records/${words%% *}"-*.json |
          xargs -0r grep -l "\"variant\": $(grep -m1 -o '"variant": .*' "$again" | cut -c12-)" | head -n 1)
        [ -n "$record" ] || error "$words: gives what no record holds"
        for field in correct variant network; do
          shown=$(grep -m1 "\"$field\":" "$record")
          [ "$shown" = "$(grep -m1 "\"$field\":" "$again")" ] ||
            error "$words: gives another $field than the report's $shown"
        done
        checked=$((checked + 1))
        ;;
      *) error "$words: status $status: $output" ;;
    esac
  done <"$TEST_TMPDIR/commands"
}
check_commands "$out/submission.md" "$out/records"
[ $checked -ge 1 ] || error "no command of m2 was run"

# Without a GPU that is said once, and is no failure.
output=$(CUDA_VISIBLE_DEVICES='' "$program" m1 sp19 --out "$TEST_TMPDIR/m1" 2>&1)
status=$?
if [ $status -ne 3 ] || [[ $output == *FAILED* ]] ||
  [[ $output != *'[3/4] m1-sp19-traced left out'* ]] ||
  [[ $output != *'submission: without a GPU, 2 of 4 steps were left out'* ]]; then
  error "m1 without a GPU: status $status: $output"
fi
grep -q 'Not measured: there is no run of the baseline on the GPU' \
  <<<"$(tr -d '*' <"$TEST_TMPDIR/m1/submission.md")" || error "the report does not say what is missing"
checked=0
check_commands "$TEST_TMPDIR/m1/submission.md" "$TEST_TMPDIR/m1/records"
[ $checked -eq 1 ] || error "the command of m1 on the CPU was not run"
for milestone in m3 m4 final; do
  output=$(CUDA_VISIBLE_DEVICES='' "$program" $milestone sp19 --out "$TEST_TMPDIR/none" 2>&1)
  status=$?
  if [ $status -ne 3 ] || [[ $output == *FAILED* || $output != *'nothing was measured'* ]]; then
    error "$milestone without a GPU: status $status: $output"
  fi
  # From records of a GPU.
  (cd "$TEST_TMPDIR" && PATH=$TEST_TMPDIR "$root/reports/submission" --milestone $milestone \
    --records "$root/reports/measured/h200" --network sp19 --out "of-$milestone" >/dev/null 2>&1) ||
    error "no report of $milestone from the records"
  check_commands "$TEST_TMPDIR/of-$milestone/submission.md" reports/measured/h200
done

# With a kernel of the participant's own.
cat >"$TEST_TMPDIR/loops.cc" <<'END'
extern "C" void convolution(const float* x, const float* k, float* y, int B, int C, int H, int W, int M, int K) {
  for (int b = 0; b < B; ++b)
    for (int m = 0; m < M; ++m)
      for (int h = 0; h <= H - K; ++h)
        for (int w = 0; w <= W - K; ++w) {
          float sum = 0;
          for (int c = 0; c < C; ++c)
            for (int p = 0; p < K; ++p)
              for (int q = 0; q < K; ++q)
                sum += x[((b * C + c) * H + h + p) * W + w + q] * k[((m * C + c) * K + p) * K + q];
          y[((b * M + m) * (H - K + 1) + h) * (W - K + 1) + w] = sum;
        }
}
END
output=$("$program" m2 sp19 --sizes 10 --out "$TEST_TMPDIR/own" --kernel "$TEST_TMPDIR/loops.cc" 2>&1)
[[ $output == *'m2-sp19-10-kernel1 done'* ]] || error "the kernel did not run: $output"
grep -q 'loops' "$TEST_TMPDIR/own/submission.md" || error "the report lacks the kernel"

# A folder is a kernel too, and so is a file by any name. Which sections there
# are is not known before the runs: a command makes the report from the records.
mkdir "$TEST_TMPDIR/in a folder"
cp "$TEST_TMPDIR/loops.cc" "$TEST_TMPDIR/in a folder/loops.cc"
cp "$TEST_TMPDIR/loops.cc" "$TEST_TMPDIR/loops.c"
printf '## No such section\nHello\n' >"$TEST_TMPDIR/notes.md"
output=$("$program" m2 sp19 --sizes 10 --out "$TEST_TMPDIR/bad notes" --notes "$TEST_TMPDIR/notes.md" \
  --kernel "$TEST_TMPDIR/loops.c" --kernel "$TEST_TMPDIR/in a folder" 2>&1)
[[ $output == *'m2-sp19-10-kernel1 done'*'m2-sp19-10-kernel2 done'* ]] || error "the kernels did not run: $output"
[[ $output == *'report             FAILED, status 2: '*'notes.md: line 1: there is no section'* ]] ||
  error "notes of no section are taken: $output"
command=$(grep -o 'bazel run //reports:submission -- .*' <<<"$output")
printf '## Summary\nHello\n' >"$TEST_TMPDIR/notes.md"
eval "reports/submission ${command#*-- }" >/dev/null 2>&1 || error "the command makes no report: $command"
grep -q 'Hello' "$TEST_TMPDIR/bad notes/submission.md" || error "the report lacks the notes"

# A GPU without ncu: what follows the counters is not left out.
mkdir -p "$TEST_TMPDIR/bundle/bin" "$TEST_TMPDIR/bundle/scripts"
cp "$program" "$TEST_TMPDIR/bundle/scripts"
printf '#!/bin/sh\necho "measure_ncu.sh: ncu is not on this machine" >&2; exit 3\n' \
  >"$TEST_TMPDIR/bundle/scripts/measure_ncu.sh"
printf '#!/bin/sh\n' | tee "$TEST_TMPDIR/bundle/bin/convlab" >"$TEST_TMPDIR/bundle/bin/submission"
chmod +x "$TEST_TMPDIR"/bundle/*/*
output=$("$TEST_TMPDIR/bundle/scripts/run_submission.sh" final --out "$TEST_TMPDIR/no-ncu" 2>&1) ||
  error "final without ncu: status $?: $output"
[[ $output == *'counters          done'*'ncu is not on this machine'*'final-fa19-traced done'* ]] ||
  error "final without ncu: $output"

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
