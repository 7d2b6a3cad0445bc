#!/bin/bash
# Tests what tools/compare_pytorch.py says of wrong arguments, and where PyTorch
# is missing.
set -u
failed=0
# A machine may have PyTorch.
mkdir -p "$TEST_TMPDIR/without"
echo 'raise ImportError("none here")' >"$TEST_TMPDIR/without/torch.py"
echo >"$TEST_TMPDIR/without/numpy.py"
# expect STATUS LINE ARGUMENTS...
expect() {
  local status=$1 line=$2 said
  shift 2
  said=$(PYTHONPATH="$TEST_TMPDIR/without" python3 tools/compare_pytorch.py "$@" 2>&1)
  local found=$?
  if [ "$found" -ne "$status" ] || [ "$said" != "compare_pytorch.py: $line" ]; then
    failed=1
    echo "$*: status $found, expected $status; said: $said"
  fi
}
expect 3 'PyTorch or numpy is not installed: none here'
expect 3 'PyTorch or numpy is not installed: none here' --device cpu --json "$TEST_TMPDIR/x.json"
expect 2 "argument --batch: '1,0', expected whole numbers of at least 1, each once, separated by commas" --batch 1,0
expect 2 "argument --batch: '5,5', expected whole numbers of at least 1, each once, separated by commas" --batch 5,5
expect 2 "argument --modes: 'slow', expected some of eager, compiled, graph, compiled-graph, separated by commas" --modes slow
expect 2 '--seconds and --samples: expected more than 0; --threads: expected 0 or more' --seconds nan
expect 2 'unrecognized arguments: fa19' fa19
if [ -e "$TEST_TMPDIR/x.json" ]; then
  failed=1
  echo "a record without a comparison"
fi
if ! python3 tools/compare_pytorch.py --help | grep -q -- '--bundle'; then
  failed=1
  echo "--help does not name --bundle"
fi
exit $failed
