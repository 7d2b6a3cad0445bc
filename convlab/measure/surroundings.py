"""What padding, strides and halves cost convlab on a GPU: surroundings.py [FILE]

Of the problems that people have (problems.inc), timed as compare.py does, x and y at
PLACES places in memory, of which the median counts: where tensors just fit into the L2
cache, it depends on their places what it keeps.

- with stride 1 and padding: the kernel that is chosen, and the same kernel for the
  padded image, where there is no padding to do.
- with strides: the kernel that is chosen; and for a problem with stride 1 that has as
  many outputs and products, but fewer inputs, the fastest lesson and the general kernel.
- in halves (class fp16), with and without weights that stay: the kernel that is
  chosen, the general kernel, wgmma_fp16, and PyTorch's cuDNN.

FILE is written with the numbers as JSON. Exit status 1 if a result is wrong, 3 if
there is no PyTorch with a GPU.
"""

import statistics
import sys

from measuring import PROBLEMS, ROUNDS, TURN, find_torch, replayed_us, write_record

PLACES = 3
LESSONS = [
    "tiled_shared",
    "constant_weights",
    "restrict_unrolled",
    "im2col_shared",
    "fused_im2col",
    "register_tiled",
    "whole_image",
]


def call_of(convlab, x, w, stride, padding, kernel=None, stays=False, accuracy=None):
    """A call that can be captured, and the y that it writes; None: not taken."""
    call = convlab.Conv2d if stays else convlab.conv2d
    arguments = dict(
        stride=stride, padding=padding, accuracy=accuracy, kernel=kernel, capturable=True
    )
    try:
        if stays:
            layer = call(w, **arguments)
            run = lambda y: layer(x, out=y)  # noqa: E731
        else:
            run = lambda y: call(x, w, out=y, **arguments)  # noqa: E731
        y = run(None)
        return lambda: run(y), y
    except convlab.ConvlabError:
        return None


def kernel_of(convlab, x, w, stride, padding):
    names = "batch channels height width".split()
    problem = dict(zip(names, x.shape))
    problem.update(zip(["filters", "_", "kernel_height", "kernel_width"], w.shape))
    del problem["_"]
    problem["stride_height"] = problem["stride_width"] = stride
    for side in ("top", "bottom", "left", "right"):
        problem["padding_" + side] = padding
    halves = x.element_size() == 2
    problem["format"] = 2 if halves else 0
    accuracy = "fp16" if halves else "fp32"
    return convlab.Plan(problem, device=0, accuracy=accuracy, capturable=True).kernel


def main():
    torch = find_torch("surroundings.py")
    if torch is None:
        return 3
    import convlab

    failed = False
    conv2d = torch.nn.functional.conv2d

    def timed(x, w, stride, padding, tolerance, **arguments):
        """us of a call; None if the kernel does not take it."""
        nonlocal failed
        # All at a time, so that they have memory of their own.
        inputs = [x] + [x.clone() for _ in range(PLACES - 1)]
        found = [call_of(convlab, x, w, stride, padding, **arguments) for x in inputs]
        if found[0] is None:
            return None
        expected = conv2d(x.double(), w.double(), None, stride, padding)
        for _, y in found:
            if not (y - expected).norm() <= tolerance * expected.norm():
                print(f"wrong: {tuple(x.shape)} {tuple(w.shape)} {arguments}")
                failed = True
        del expected
        return statistics.median(replayed_us(torch, run) for run, _ in found)

    padded_rows, strided_rows, half_rows = [], [], []
    for name, batch, c, h, w, m, k, stride, padding in PROBLEMS:
        x = torch.rand(batch, c, h, w, device="cuda") * 2 - 1
        filters = torch.rand(m, c, k, k, device="cuda") * 2 - 1
        kernel = kernel_of(convlab, x, filters, stride, padding)
        row = {"name": name, "kernel": kernel}
        row["us"] = timed(x, filters, stride, padding, 1e-6, stays=True)
        if stride == 1 and padding > 0:
            inner = torch.nn.functional.pad(x, (padding,) * 4).contiguous()
            row["us_of_padded"] = timed(inner, filters, 1, 0, 1e-6, kernel=kernel, stays=True)
            padded_rows.append(row)
        if stride > 1:
            height, width = ((n + 2 * padding - k) // stride + k for n in (h, w))
            plain = torch.rand(batch, c, height, width, device="cuda") * 2 - 1
            times = {
                lesson: timed(plain, filters, 1, 0, 1e-5, kernel=lesson) for lesson in LESSONS
            }
            times = {lesson: us for lesson, us in times.items() if us is not None}
            row["lesson"] = min(times, key=times.get)
            row["lesson_us"] = times[row["lesson"]]
            row["general_us"] = timed(plain, filters, 1, 0, 1e-6, kernel="general")
            strided_rows.append(row)
        print(*row.values())
        xh, wh = x.half(), filters.half()
        half = {"name": name, "kernel": kernel_of(convlab, xh, wh, stride, padding)}
        half["us"] = timed(xh, wh, stride, padding, 2e-3)
        half["us_stays"] = timed(xh, wh, stride, padding, 2e-3, stays=True)
        for kernel in ("general", "wgmma_fp16"):
            half[kernel + "_us"] = timed(
                xh, wh, stride, padding, 2e-3, kernel=kernel, stays=True, accuracy="fp16"
            )
        half["cudnn_us"] = replayed_us(torch, lambda: conv2d(xh, wh, None, stride, padding))
        half_rows.append(half)
        print(*half.values())
    write_record(
        "convlab.surroundings/1",
        torch,
        convlab=convlab.version(),
        method=f"median of {ROUNDS} replays of {TURN} calls in a row, warm L2, "
        f"and of {PLACES} places in memory",
        padded=padded_rows,
        strided=strided_rows,
        halves=half_rows,
    )
    return 1 if failed else 0


sys.exit(main())
