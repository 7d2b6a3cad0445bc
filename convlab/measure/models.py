"""Times PyTorch models before and after convlab.torch.accelerate: models.py [FILE]

LeNet-5, the stem of a ResNet, and fa19 of the course, in float32 (TF32 off,
cudnn.benchmark on), as PyTorch calls them and replayed as a CUDA graph: the median
of ROUNDS, and the largest difference of an output. FILE is written with the numbers
as JSON. Exit status 3 if there is no PyTorch with a GPU.
"""

import copy
import sys

import convlab
from measuring import find_torch, median_us, write_record

TURN = 20


def models(nn):
    """Name, model, shape of the input."""
    yield (
        "LeNet-5",
        nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.Tanh(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.Tanh(),
            nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10),
        ),
        (256, 1, 28, 28),
    )  # fmt: skip
    yield (
        "ResNet stem",
        nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3), nn.ReLU(),
            nn.MaxPool2d(3, 2, padding=1),
        ),
        (16, 3, 224, 224),
    )  # fmt: skip
    yield (
        "fa19",
        nn.Sequential(
            nn.Conv2d(1, 12, 5), nn.Tanh(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 5), nn.Tanh(), nn.MaxPool2d(2, ceil_mode=True),
            nn.Flatten(), nn.Linear(24 * 15 * 15, 10),
        ),
        (1000, 1, 70, 70),
    )  # fmt: skip


def measure(torch, model, x):
    """us of a call, us of a replay, y."""
    graph = torch.cuda.CUDAGraph()
    y = model(x)
    with torch.cuda.graph(graph):
        model(x)
    return (
        median_us(torch, lambda: model(x), TURN),
        median_us(torch, graph.replay, TURN),
        y,
    )


def main():
    torch = find_torch("models.py")
    if torch is None:
        return 3
    rows = []
    for name, model, shape in models(torch.nn):
        model = model.cuda().eval()
        x = torch.rand(shape, device="cuda")
        with torch.no_grad():
            accelerated = convlab.torch.accelerate(copy.deepcopy(model), x)
            taken = [
                any(module._convlab_faster.values())
                for module in accelerated.modules()
                if isinstance(module, convlab.torch._Convolution)
            ]
            before = measure(torch, model, x)
            after = measure(torch, accelerated, x)
        difference = (before[2] - after[2]).abs().max().item()
        rows.append(
            {
                "model": name,
                "input": shape,
                "convolutions": len(taken),
                "taken": sum(taken),
                "call_us": [before[0], after[0]],
                "replay_us": [before[1], after[1]],
                "largest_difference": difference,
                "largest_output": before[2].abs().max().item(),
            }
        )
        print(
            f"{name} {shape}: {sum(taken)} of {len(taken)} convolutions; "
            f"call {before[0]:.1f} -> {after[0]:.1f} us, "
            f"replay {before[1]:.1f} -> {after[1]:.1f} us; "
            f"largest difference {difference:.2g}"
        )
    write_record("convlab.models/1", torch, rows=rows)
    return 0


sys.exit(main())
