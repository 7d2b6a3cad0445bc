"""What a call of convlab.conv2d costs the host, from Python: overhead.py

Prints the time of a call with NumPy arrays on the CPU, for a problem that takes
no time itself, and of one that queues work on the GPU with PyTorch's arrays, if
there are both.
"""

import statistics
import time

import convlab
from measuring import find_torch

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


def main():
    try:
        import numpy

        x = numpy.ones((1, 1, 1, 1), numpy.float32)
        y = numpy.empty_like(x)
        us = median_us(lambda: convlab.conv2d(x, x, out=y, threads=1))
        print(f"CPU, 1 product, NumPy: {us:.2f} us")
        layer = convlab.Conv2d(x, threads=1)
        us = median_us(lambda: layer(x, out=y))
        print(f"CPU, 1 product, NumPy, weights that stay: {us:.2f} us")
    except ImportError:
        print("there is no NumPy")
    torch = find_torch("overhead.py")
    if torch is None:
        return
    x = torch.ones(1, 1, 28, 28, device="cuda")
    w = torch.ones(6, 1, 5, 5, device="cuda")
    y = torch.ones(1, 6, 24, 24, device="cuda")
    wait = torch.cuda.synchronize
    us = median_us(lambda: convlab.conv2d(x, w, out=y), wait)
    print(f"GPU, convlab.conv2d: {us:.2f} us")
    us = median_us(lambda: convlab.conv2d(x, w), wait)
    print(f"GPU, convlab.conv2d, new y: {us:.2f} us")
    layer = convlab.Conv2d(w)
    us = median_us(lambda: layer(x, out=y), wait)
    print(f"GPU, convlab.Conv2d: {us:.2f} us")
    us = median_us(lambda: torch.nn.functional.conv2d(x, w), wait)
    print(f"GPU, torch.nn.functional.conv2d: {us:.2f} us")


main()
