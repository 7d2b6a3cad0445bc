#!/bin/bash
# Writes the sample submission in reports/samples anew from the H200's records:
#   bazel run //reports:samples
# It is the final milestone's, which contains what the others hand in.
# With --check FOLDER, compares the one there with what the records give now.
# With --pages CHECKER, makes every milestone's page and hands all to CHECKER.
set -eu

# make MILESTONE OUT
make() {
  # By relative names, which stand in the documents.
  env -u BUILD_WORKING_DIRECTORY reports/submission --milestone "$1" \
    --records reports/measured/h200 --network fa19 --out "$2" \
    --team "Sample team" --members "Ada, Grace" >/dev/null
  # PDF holds the day on which it was made, so it cannot be checked.
  rm -f "$2/submission.pdf"
}

case ${1-} in
  --check)
    make final "$TEST_TMPDIR/final"
    # The version of gnuplot stands in what it draws, and another one draws
    # other paths.
    drawn=$(grep -h -o 'GNUPLOT [0-9.]* patchlevel [0-9]*' \
      "$2"/final/charts/*.svg "$TEST_TMPDIR"/final/charts/*.svg | sort -u | wc -l)
    if [ "$drawn" -gt 1 ]; then
      echo "samples: SKIPPED charts and page: another version of gnuplot drew them"
      set -- "$@" --exclude='*.svg' --exclude='*.html'
    fi
    if ! diff --recursive --brief "${@:3}" "$2/final" "$TEST_TMPDIR/final"; then
      diff --recursive "${@:3}" --exclude='*.svg' --exclude='*.html' \
        "$2/final" "$TEST_TMPDIR/final" | cut -c1-200 | head -40
      echo "stale: run bazel run //reports:samples"
      exit 1
    fi
    ;;
  --pages)
    pages=()
    for milestone in m1 m2 m3 m4 final; do
      make "$milestone" "$TEST_TMPDIR/$milestone"
      pages+=("$TEST_TMPDIR/$milestone/submission.html")
    done
    "$2" "${pages[@]}"
    ;;
  *)
    samples=${BUILD_WORKSPACE_DIRECTORY:?run it as bazel run //reports:samples}/reports/samples
    rm -rf "$samples/final"
    make final "$samples/final"
    echo "reports/samples/final"
    ;;
esac
