#!/bin/bash
# Draws each chart of reports/charts anew and compares it with the one there.
set -u
failed=0
cp -rL reports/charts "$TEST_TMPDIR/charts" && cd "$TEST_TMPDIR/charts" || exit 1
chmod -R u+w .
for script in *.gp; do
  chart=${script%.gp}.svg
  mv "$chart" committed.svg && gnuplot "$script" || exit 1
  version='GNUPLOT [0-9.]* patchlevel [0-9]*'
  if [ "$(grep -o "$version" committed.svg)" != "$(grep -o "$version" "$chart")" ]; then
    echo "$chart: SKIPPED, another version of gnuplot drew it"
  elif ! cmp committed.svg "$chart"; then
    echo "$chart is stale: run bazel run //reports:readme"
    failed=1
  fi
done
exit $failed
