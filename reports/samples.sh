#!/bin/bash
# Writes the sample submissions in reports/samples anew from the H200's records:
#   bazel run //reports:samples
# With --check FOLDER, compares those there with what the records give now.
set -eu

# make MILESTONE OUT
make() {
  # By relative names, which stand in the documents.
  env -u BUILD_WORKING_DIRECTORY reports/submission --milestone "$1" \
    --records reports/measured/h200 --network fa19 --out "$2" \
    --team "Sample team" --members "Ada, Grace" >/dev/null
}

milestones="m1 m2 m3 m4 final"
if [ "${1-}" = --check ]; then
  failed=0
  for milestone in $milestones; do
    made=$TEST_TMPDIR/$milestone
    make "$milestone" "$made"
    # Other versions of gnuplot and weasyprint draw other bytes.
    diff --recursive --exclude='*.svg' --exclude='*.pdf' --exclude='*.html' \
      "$2/$milestone" "$made" || failed=1
  done
  [ $failed -eq 0 ] || echo "stale: run bazel run //reports:samples"
  exit $failed
fi

samples=${BUILD_WORKSPACE_DIRECTORY:?run it as bazel run //reports:samples}/reports/samples
for milestone in $milestones; do
  make "$milestone" "$samples/$milestone"
  pdf=$samples/$milestone/submission.pdf
  # Larger ones are not worth a place in the repository.
  if [ "$(stat -c %s "$pdf")" -gt 300000 ]; then rm "$pdf"; fi
  echo "reports/samples/$milestone"
done
