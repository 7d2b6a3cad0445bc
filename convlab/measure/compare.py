"""Times convlab beside PyTorch's cuDNN on problems that people have:

    compare.py [FILE]          measures, and writes FILE, a JSON record
    compare.py --table FILE    prints a record as the table of docs/library.md

The first layers of known networks, stems, digits, frames of audio and radar, and
inputs of depth and segmentation, in float32 (TF32 off, cudnn.benchmark on): the
GPU's time of a call, of TURN in a row that are replayed as a CUDA graph, by events,
the median of ROUNDS. The calls find their data in the L2 cache if it fits. Each
result is compared with float64 before. Prints a line for each problem and the
geometric mean of the ratios. Exit status 1 if a result is wrong, 3 if
there is no PyTorch with a GPU.
"""

import json
import statistics
import sys

from measuring import PROBLEMS, ROUNDS, TURN, find_torch, replayed_us, write_record


def told(ratio):
    """How many times as fast; bold where cuDNN is faster."""
    return f"{ratio:.2f}" if ratio >= 1 else f"**{ratio:.2f}**"


def print_table(record):
    print(
        "| problem | x | filters | kernel | µs | cuDNN µs | times as fast | estimated |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for row in record["rows"]:
        batch, c, h, w, m, k, stride, padding = row["problem"]
        ratio = row["cudnn_us"] / row["us"]
        # Not in records of version 0.1.
        cudnn_us = row.get("estimated_cudnn_us")
        estimated = told(cudnn_us / row["estimated_us"]) if cudnn_us else ""
        filters = f"{m}, {k}×{k}"
        filters += f", stride {stride}" if stride > 1 else ""
        filters += f", padding {padding}" if padding > 0 else ""
        print(
            f"| {row['name']} | {batch}×{c}×{h}×{w} | {filters} | {row['kernel']} | "
            f"{row['us']:.1f} | {row['cudnn_us']:.1f} | "
            f"{told(ratio)} | {estimated} |"
        )


def main():
    if sys.argv[1:2] == ["--table"]:
        with open(sys.argv[2]) as file:
            print_table(json.load(file))
        return 0
    torch = find_torch("compare.py")
    if torch is None:
        return 3
    import convlab

    conv2d = torch.nn.functional.conv2d
    print(torch.cuda.get_device_name(), "cuDNN", torch.backends.cudnn.version())
    rows, failed = [], False
    for name, batch, c, h, w, m, k, stride, padding in PROBLEMS:
        x = torch.rand(batch, c, h, w, device="cuda") * 2 - 1
        filters = torch.rand(m, c, k, k, device="cuda") * 2 - 1
        plan = convlab.Plan(
            {
                "batch": batch, "channels": c, "height": h, "width": w,
                "filters": m, "kernel_height": k, "kernel_width": k,
                "stride_height": stride, "stride_width": stride,
                "padding_top": padding, "padding_bottom": padding,
                "padding_left": padding, "padding_right": padding,
            },
            device=0,
            capturable=True,
        )  # fmt: skip
        out = x.new_empty(batch, m, plan.output_height, plan.output_width)
        space = x.new_empty(plan.workspace_bytes // 4 + 64)
        call = lambda: convlab.conv2d(  # noqa: E731
            x, filters, None, stride, padding,
            out=out, workspace=space, capturable=True,
        )  # fmt: skip
        call()
        expected = conv2d(x.double(), filters.double(), None, stride, padding)
        error = ((out - expected).norm() / expected.norm()).item()
        del expected
        if not error <= 1e-6:
            print(f"{name}: wrong, relative error {error:.2g} by {plan.kernel}")
            failed = True
            continue
        ours = replayed_us(torch, call)
        theirs = replayed_us(torch, lambda: conv2d(x, filters, None, stride, padding))
        rows.append(
            {
                "name": name,
                "problem": [batch, c, h, w, m, k, stride, padding],
                "kernel": plan.kernel,
                "estimated_us": plan.estimated_ns / 1e3,
                "estimated_cudnn_us": plan.estimated_cudnn_ns / 1e3,
                "us": ours,
                "cudnn_us": theirs,
                "relative_error": error,
            }
        )
        print(
            f"{name} {batch} {c} {h}x{w} {m} {k} {stride} {padding} | "
            f"{plan.kernel} {ours:.1f} | {theirs:.1f} | {theirs / ours:.2f}"
        )
    ratios = [row["cudnn_us"] / row["us"] for row in rows]
    mean = statistics.geometric_mean(ratios) if ratios else 0
    print(
        f"geometric mean over {len(rows)} problems: {mean:.2f}; as fast or faster "
        f"on {sum(ratio >= 1 for ratio in ratios)}"
    )
    write_record(
        "convlab.compare/1",
        torch,
        convlab=convlab.version(),
        method=f"median of {ROUNDS} replays of {TURN} calls in a row, warm L2",
        rows=rows,
    )
    return 1 if failed else 0


sys.exit(main())
