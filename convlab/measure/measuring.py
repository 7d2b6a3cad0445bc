"""What the measurements beside PyTorch share."""

import ast
import json
import pathlib
import statistics
import sys

ROUNDS, TURN = 15, 10

# name, batch, channels, height, width, filters, kernel, stride, padding
PROBLEMS = [
    ast.literal_eval(f"({line.strip().strip('{},')})")
    for line in pathlib.Path(__file__).with_name("problems.inc").read_text().splitlines()
    if line.startswith("{")
]


def find_torch(program):
    """PyTorch, set up for measuring in float32, or None: there is none with a GPU.

    Then a line on standard error says so; the exit status for it is 3.
    """
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print(f"{program}: there is no PyTorch with a GPU", file=sys.stderr)
        return None
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    return torch


def write_record(schema, torch, **measured):
    """Writes a record of the machine and `measured` to the program's argument.

    Without an argument there is none. `torch` is None where there is no PyTorch
    with a GPU.
    """
    if len(sys.argv) < 2:
        return
    record = {"schema": schema}
    if torch is not None:
        record["gpu"] = torch.cuda.get_device_name()
        record["torch"] = torch.__version__
        record["cudnn"] = torch.backends.cudnn.version()
    with open(sys.argv[1], "w") as file:
        json.dump({**record, **measured}, file, indent=1)


def median_us(torch, call, turn):
    """The GPU's time of a call, of `turn` in a row; the median of ROUNDS."""
    for _ in range(3):
        call()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(turn):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / turn * 1e3)
    return statistics.median(times)


def replayed_us(torch, call):
    """The same of TURN calls in a row, which are replayed as a CUDA graph."""
    # Outside of the capture: loads code, and lets cuDNN search.
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(TURN):
            call()
    return median_us(torch, graph.replay, 1) / TURN
