#!/bin/sh
# Reads hardware counters by Nsight Compute (ncu) for every variant of the GPU's
# ladder, from an unpacked bundle, on a machine with a GPU:
#   measure_ncu.sh BUNDLE OUT [NETWORK [VARIANT...]]
# One CSV per variant goes to OUT, with a row per kernel that the variant
# launches on the layers of NETWORK (default fa19) at 10,000 images. Exit
# status: 0 done, or the counters are not permitted here, which a message says;
# 1 a variant failed; 2 wrong usage; 3 ncu is missing.
set -eu
# Numbers have a decimal point in every locale.
export LC_ALL=C
if [ $# -lt 2 ]; then
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
bundle=$1
out=$2
shift 2
network=fa19
# Unpacks the programs.
"$bundle/convlab" help >/dev/null 2>&1 || true
if [ $# -gt 0 ]; then
  network=$1
  shift
fi
mkdir -p "$out"

ncu=$(command -v ncu || true)
if [ -z "$ncu" ]; then
  # The last of several versions is the newest; the toolkit's own is preferred.
  for path in /opt/nvidia/nsight-compute/*/ncu /usr/local/cuda/bin/ncu; do
    [ ! -x "$path" ] || ncu=$path
  done
fi
if [ -z "$ncu" ]; then
  echo "measure_ncu.sh: ncu (Nsight Compute) is not on this machine" >&2
  exit 3
fi

# Elapsed cycles divided by the launch's time are the clock of the
# multiprocessors, which the GPU controls as in all measurements; shares of a
# peak refer to that clock. ncu shows "n/a" for a counter that a GPU lacks. Both
# of the tensor cores' counters: which one a GPU has depends on its generation.
counters="gpu__time_duration.sum
sm__cycles_elapsed.max
sm__cycles_elapsed.avg.per_second
smsp__inst_executed.sum
dram__bytes_read.sum
dram__bytes_write.sum
dram__throughput.avg.pct_of_peak_sustained_elapsed
sm__throughput.avg.pct_of_peak_sustained_elapsed
sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active
sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active
sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active
sm__inst_executed_pipe_fma_type_fp16.avg.pct_of_peak_sustained_active
sm__inst_executed.avg.per_cycle_active
sm__warps_active.avg.pct_of_peak_sustained_active
l1tex__t_sector_hit_rate.pct
lts__t_sector_hit_rate.pct
l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum
l1tex__data_pipe_lsu_wavefronts_mem_shared.sum
launch__registers_per_thread
launch__shared_mem_per_block_static
launch__shared_mem_per_block_dynamic
launch__occupancy_limit_registers
launch__occupancy_limit_shared_mem"
for reason in barrier branch_resolving dispatch_stall drain imc_miss lg_throttle \
  long_scoreboard math_pipe_throttle membar mio_throttle misc no_instruction \
  not_selected selected short_scoreboard sleeping tex_throttle wait; do
  counters="$counters
smsp__average_warps_issue_stalled_${reason}_per_issue_active.ratio"
done
metrics=$(echo "$counters" | paste -s -d ,)

if [ $# -eq 0 ]; then
  # Names are words.
  # shellcheck disable=SC2046
  set -- $("$bundle/bin/bench" --list --device gpu)
fi
failed=0
for variant; do
  echo "== $variant"
  log=$out/$variant.log
  csv=$out/$variant.csv
  # One launch of each grid, block and shared memory: a variant that cuts the
  # batch into pieces launches the same kernels again and again.
  status=0
  "$ncu" --profile-from-start off --filter-mode per-launch-config \
    --launch-count 1 --clock-control none --print-units base --page raw --csv \
    --log-file "$csv.part" --metrics "$metrics" \
    "$bundle/bin/bench" --once --device gpu --variants "$variant" \
    --layers "$network" >"$log" 2>&1 || status=$?
  if grep -q ERR_NVGPUCTRPERM "$log" "$csv.part" 2>/dev/null; then
    rm -f "$csv.part" "$log"
    echo "measure_ncu.sh: this machine's administrator does not permit hardware counters (ERR_NVGPUCTRPERM): nothing was measured" >&2
    exit 0
  fi
  # A header and a row of units without others are not a measurement.
  if [ $status -eq 0 ] && [ "$(grep -c '^"[0-9]' "$csv.part" 2>/dev/null)" -gt 0 ]; then
    # Drops ncu's own messages, which name the machine's folders.
    grep '^"' "$csv.part" >"$csv.rows"
    mv "$csv.rows" "$csv"
    rm -f "$log" "$csv.part"
  else
    failed=1
    echo "$variant failed with status $status:" >&2
    cat "$log" "$csv.part" 2>/dev/null | tail -n 5 >&2
    rm -f "$csv.part"
  fi
done
exit $failed
