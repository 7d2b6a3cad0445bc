#!/bin/bash
# Writes the sample submission in reports/samples anew from the H200's records:
#   bazel run //reports:samples
# With --check FOLDER, compares the one there with what the records give now.
# With --pages CHECKER, makes every milestone's page, and the explorer's, and
# hands all to CHECKER.
set -eu

# make MILESTONE FOLDER: into reports/samples/MILESTONE of FOLDER, from the
# records there, by relative names, which stand in the documents.
program=$PWD/reports/submission
make() {
  (
    cd "$2"
    # Without weasyprint: a PDF holds the day on which it was made, so that it
    # cannot be checked.
    env -u BUILD_WORKING_DIRECTORY PATH=/none "$program" --milestone "$1" \
      --records reports/measured/h200 --network fa19 --out "reports/samples/$1" \
      --team "Sample team" --members "Ada, Grace" >/dev/null
  )
}

if [ $# -gt 0 ]; then
  scratch=$TEST_TMPDIR/made
  mkdir -p "$scratch/reports"
  ln -s "$PWD/reports/measured" "$scratch/reports/measured"
fi
case ${1-} in
  --check)
    make final "$scratch"
    if ! diff --recursive --brief "$2/final" "$scratch/reports/samples/final"; then
      diff --recursive --exclude='*.svg' --exclude='*.html' \
        "$2/final" "$scratch/reports/samples/final" | cut -c1-200 | head -40
      echo "stale: run bazel run //reports:samples"
      exit 1
    fi
    ;;
  --pages)
    pages=()
    for milestone in m1 m2 m3 m4 final; do
      make "$milestone" "$scratch"
      pages+=("$scratch/reports/samples/$milestone/submission.html")
    done
    reports/explore reports/measured --out "$scratch/explore.html" >/dev/null
    "$2" "${pages[@]}" "$scratch/explore.html"
    ;;
  *)
    root=${BUILD_WORKSPACE_DIRECTORY:?run it as bazel run //reports:samples}
    rm -rf "$root/reports/samples/final"
    make final "$root"
    echo "reports/samples/final"
    ;;
esac
