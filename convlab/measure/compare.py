"""Times convlab beside PyTorch's cuDNN on problems that people have: compare.py

The first layers of known networks, stems, digits, frames of audio and radar, and
inputs of depth and segmentation, in float32 (TF32 off, cudnn.benchmark on): the
GPU's time of a call, of TURN in a row that are replayed as a CUDA graph, by events,
the median of ROUNDS. The calls find their data in the L2 cache if it fits. Each result is compared with float64 before. One
line per problem:

    name batch channels size filters kernel stride padding | kernel us | cudnn us | ratio

and the geometric mean of the ratios. Exit status 1 if a result is wrong, 3 if
there is no PyTorch with a GPU.
"""

import math
import statistics
import sys

import convlab

TURN, ROUNDS = 10, 15

# name, batch, channels, height, width, filters, kernel, stride, padding
PROBLEMS = [
    ("lenet5-c1", 256, 1, 28, 28, 6, 5, 1, 2),
    ("lenet5-c3", 256, 6, 14, 14, 16, 5, 1, 0),
    ("mnist-3x3", 256, 1, 28, 28, 32, 3, 1, 0),
    ("mnist-3x3-same", 256, 1, 28, 28, 16, 3, 1, 1),
    ("cifar-stem", 128, 3, 32, 32, 16, 3, 1, 1),
    ("cifar-resnet", 128, 16, 32, 32, 16, 3, 1, 1),
    ("cifar-down", 128, 16, 32, 32, 32, 3, 2, 1),
    ("cifar-5x5", 128, 3, 32, 32, 32, 5, 1, 2),
    ("svhn-7x7", 128, 3, 32, 32, 24, 7, 1, 3),
    ("alexnet", 16, 3, 224, 224, 64, 11, 4, 2),
    ("vgg-1", 8, 3, 224, 224, 64, 3, 1, 1),
    ("resnet-stem", 16, 3, 224, 224, 64, 7, 2, 3),
    ("resnet-stem-1", 1, 3, 224, 224, 64, 7, 2, 3),
    ("mobilenet-stem", 16, 3, 224, 224, 32, 3, 2, 1),
    ("efficientnet-stem", 16, 3, 224, 224, 40, 3, 2, 1),
    ("inception-stem", 16, 3, 299, 299, 32, 3, 2, 0),
    ("squeezenet-stem", 16, 3, 224, 224, 64, 3, 2, 0),
    ("densenet-stem-bw", 16, 1, 224, 224, 64, 7, 2, 3),
    ("yolo-stem", 4, 3, 416, 416, 16, 3, 1, 1),
    ("yolo-stem-2", 4, 3, 416, 416, 32, 3, 2, 1),
    ("patch-4", 16, 3, 224, 224, 96, 4, 4, 0),
    ("unet-1", 2, 1, 572, 572, 64, 3, 1, 0),
    ("unet-rgb", 2, 3, 256, 256, 32, 3, 1, 1),
    ("srcnn-1", 4, 1, 256, 256, 64, 9, 1, 4),
    ("srcnn-3", 4, 32, 256, 256, 1, 5, 1, 2),
    ("espcn-1", 4, 1, 256, 256, 64, 5, 1, 2),
    ("denoise-bw", 4, 1, 180, 180, 64, 3, 1, 1),
    ("audio-mel", 32, 1, 128, 400, 16, 3, 1, 1),
    ("audio-mel-2", 32, 1, 64, 100, 32, 3, 2, 1),
    ("audio-vggish", 64, 1, 96, 64, 64, 3, 1, 1),
    ("keyword", 100, 1, 99, 40, 28, 5, 1, 0),
    ("radar-frame", 64, 2, 64, 64, 8, 3, 1, 1),
    ("radar-cube", 16, 8, 128, 128, 16, 3, 1, 1),
    ("depth-1", 8, 1, 240, 320, 32, 5, 2, 2),
    ("rgbd-stem", 8, 4, 240, 320, 32, 7, 2, 3),
    ("segment-4", 8, 4, 128, 128, 16, 3, 1, 1),
    ("segment-8", 8, 8, 128, 128, 16, 5, 1, 2),
    ("segment-16", 8, 16, 128, 128, 16, 3, 1, 1),
    ("atari", 64, 4, 84, 84, 32, 8, 4, 0),
    ("atari-2", 64, 32, 20, 20, 64, 4, 2, 0),
]


def median_us(torch, call):
    # Outside of the capture: loads code, and lets cuDNN search.
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(TURN):
            call()
    graph.replay()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / TURN * 1e3)
    return statistics.median(times)


def main():
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("compare.py: there is no PyTorch with a GPU", file=sys.stderr)
        return 3
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    conv2d = torch.nn.functional.conv2d
    print(torch.cuda.get_device_name(), "cuDNN", torch.backends.cudnn.version())
    logarithms, failed = [], False
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
        ours = median_us(torch, call)
        theirs = median_us(torch, lambda: conv2d(x, filters, None, stride, padding))
        logarithms.append(math.log(theirs / ours))
        print(
            f"{name} {batch} {c} {h}x{w} {m} {k} {stride} {padding} | "
            f"{plan.kernel} {ours:.1f} | {theirs:.1f} | {theirs / ours:.2f}"
        )
    mean = math.exp(statistics.fmean(logarithms)) if logarithms else 0
    print(f"geometric mean over {len(logarithms)} problems: {mean:.2f}")
    return 1 if failed else 0


sys.exit(main())
