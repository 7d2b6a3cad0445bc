#!/bin/bash
# Dependencies go one way: common <- kernels <- milestones and convlab, and
# reports <- common alone. Asks Bazel for the dependencies of each part; one against the
# direction fails, and the test prints its path.
set -u

workspace=$(dirname "$(readlink -f WORKSPACE)")
cd "$workspace" || exit 1

# Uses its own Bazel server: the one that runs this test is busy.
own_bazel() {
  bazel --output_user_root="$TEST_TMPDIR/bazel" "$@" 2>"$TEST_TMPDIR/errors"
}
trap 'own_bazel shutdown' EXIT

query() {
  own_bazel query --noimplicit_deps --noshow_progress "$1" || {
    cat "$TEST_TMPDIR/errors" >&2
    return 1
  }
}

failed=0
# forbid PART TARGETS: nothing in PART may depend on any of TARGETS.
forbid() {
  local found
  found=$(query "deps(//$1/...) intersect ($2)") || exit 1
  if [ -n "$found" ]; then
    printf '//%s must not depend on\n%s\nas it does by\n' "$1" "$found"
    query "somepath(//$1/..., $2)"
    failed=1
  fi
}

# The same query with a known answer, to show that the check finds dependencies.
if [ -z "$(query 'deps(//kernels/...) intersect //common/...')" ]; then
  echo "found no dependency of //kernels on //common: is the query right?"
  exit 1
fi

forbid common "//kernels/... + //milestones/... + //convlab/... + //reports/..."
forbid kernels "//milestones/... + //convlab/... + //reports/..."
forbid milestones "//convlab/... + //reports/..."
forbid convlab "//milestones/... + //reports/..."
forbid reports "//kernels/... + //milestones/... + //convlab/..."
exit $failed
