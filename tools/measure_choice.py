#!/usr/bin/env python3
"""Measures the record by which the choice of the fastest variant is judged.

  measure_choice.py BUNDLE [RECORD]

Runs the benchmark of an unpacked bundle on every problem of RECORD (default
reports/measured/h200/choice.csv) with every variant that RECORD has a column
for, and writes the medians in ms to RECORD. A variant that does not take a
problem leaves its field empty. Takes three minutes on an H200.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile

SIZES = ["B", "C", "H", "W", "M", "K"]
FIELDS = ["batch", "channels", "height", "width", "filters", "kernel_size"]
AT_ONCE = 200  # problems in one run of the benchmark


def measure(bundle, variants, problems):
    """{(problem, variant): median in ms} of one run of the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.json")
        subprocess.run(
            [os.path.join(bundle, "bin", "bench"), "--device", "gpu",
             "--class", "fp32", "--nopeers", "--seconds", "0.06",
             "--variants", ",".join(variants),
             "--layers", ";".join(problems), "--json", path],
            stdout=subprocess.DEVNULL)  # fails where a variant is inaccurate
        with open(path) as file:
            rows = json.load(file)["rows"]
    return {(",".join(str(row[field]) for field in FIELDS), row["variant"]):
            row["median_ms"] for row in rows}


def main(arguments):
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    bundle = arguments[0]
    record = arguments[1] if len(arguments) == 2 else "reports/measured/h200/choice.csv"
    with open(record, newline="") as file:
        reader = csv.DictReader(file)
        columns = reader.fieldnames
        rows = list(reader)
    variants = [name for name in columns if name not in ["set"] + SIZES]
    problems = [",".join(row[size] for size in SIZES) for row in rows]
    times = {}
    for first in range(0, len(problems), AT_ONCE):
        times.update(measure(bundle, variants, problems[first:first + AT_ONCE]))
        print(f"{min(first + AT_ONCE, len(problems))} of {len(problems)} problems",
              file=sys.stderr)
    for row, problem in zip(rows, problems):
        for variant in variants:
            ms = times.get((problem, variant))
            row[variant] = "" if ms is None else f"{ms:.4g}"
    with open(record + ".part", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(record + ".part", record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
