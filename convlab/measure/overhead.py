"""What a call of convlab.conv2d costs the host, from Python: overhead.py [FILE]

Prints the time of a call with NumPy arrays on the CPU, for a problem that takes
no time itself, and of one that queues work on the GPU with PyTorch's arrays, if
there are both: of conv2d, of a layer with weights that stay, and of an accelerated
model's. FILE is written with the numbers as JSON.
"""

import copy
import statistics
import time

import convlab
from measuring import find_torch, write_record

CALLS, ROUNDS = 200, 30


def median_us(call, wait=lambda: None):
    call()
    wait()
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - begin) / CALLS * 1e6)
        wait()
    return statistics.median(times)


def numpy_calls():
    """Name and call, on the CPU."""
    try:
        import numpy
    except ImportError:
        print("there is no NumPy")
        return
    x = numpy.ones((1, 1, 1, 1), numpy.float32)
    y = numpy.empty_like(x)
    layer = convlab.Conv2d(x, threads=1)
    yield "CPU, 1 product, NumPy", lambda: convlab.conv2d(x, x, out=y, threads=1)
    yield "CPU, 1 product, NumPy, weights that stay", lambda: layer(x, out=y)


def torch_calls(torch):
    """Name and call, on the GPU."""
    x = torch.ones(1, 1, 28, 28, device="cuda")
    conv = torch.nn.Conv2d(1, 6, 5, bias=False, device="cuda").eval()
    w = conv.weight.detach()
    y = torch.ones(1, 6, 24, 24, device="cuda")
    layer = convlab.Conv2d(w)
    accelerated = convlab.torch.accelerate(copy.deepcopy(conv), x)
    # Also if it was measured to be slower than PyTorch.
    for key in accelerated._convlab_faster:
        accelerated._convlab_faster[key] = True
    yield "one kernel of PyTorch, y.add_(1)", lambda: y.add_(1)
    yield "convlab.conv2d", lambda: convlab.conv2d(x, w, out=y)
    yield "convlab.conv2d, new y", lambda: convlab.conv2d(x, w)
    yield "convlab.Conv2d", lambda: layer(x, out=y)
    yield "convlab.Conv2d, new y", lambda: layer(x)
    yield "an accelerated torch.nn.Conv2d", lambda: accelerated(x)
    yield "torch.nn.Conv2d", lambda: conv(x)
    yield "torch.nn.functional.conv2d", lambda: torch.nn.functional.conv2d(x, w)


def main():
    torch = find_torch("overhead.py")
    calls = {name: median_us(call) for name, call in numpy_calls()}
    if torch is not None:
        with torch.no_grad():
            for name, call in torch_calls(torch):
                calls["GPU, " + name] = median_us(call, torch.cuda.synchronize)
    for name, us in calls.items():
        print(f"{name}: {us:.2f} us")
    write_record(
        "convlab.overhead/1",
        torch,
        convlab=convlab.version(),
        method=f"median of {ROUNDS} rounds of {CALLS} calls in a row",
        calls_us=calls,
    )


main()
