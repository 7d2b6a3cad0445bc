"""Convolutions by libconvlab, on NumPy arrays and on arrays in GPU memory.

    import convlab
    y = convlab.conv2d(x, w, bias, stride=2, padding=3, activation="relu")

x has the shape (batch, channels, height, width), w (filters, channels,
kernel_height, kernel_width), bias (filters,), all float32 and without gaps. What
is computed, how exactly, and the limits stand in convlab.h and docs/library.md.

Arrays on a GPU are those with __cuda_array_interface__ (CuPy, Numba, PyTorch) or
__dlpack__ (JAX); they are not copied. `out` says where y goes: it is needed on a
GPU, where only the caller knows how to allocate, unless x has the method
new_empty (PyTorch) or its module the function empty (CuPy).
"""

import importlib

from convlab._arrays import Array, new_array
from convlab._library import ConvlabError, Plan, count_gpus, version

__all__ = ["ConvlabError", "Plan", "conv2d", "count_gpus", "version"]
__version__ = version()

# Plans and the shapes of what they compute, by what they were made for. The
# oldest goes when there are too many.
_plans = {}
_MOST_PLANS = 256


def _pair(name, value):
    """(v, v) of a number, and (a, b) of a sequence of two."""
    try:
        pair = tuple(value)
    except TypeError:
        return value, value
    if len(pair) != 2:
        raise ValueError(f"{name} is {value!r}, expected a number or two")
    return pair


def problem_of(x_shape, w_shape, biased, stride, padding, activation, pool):
    """The problem, for Plan, of conv2d with arguments of these shapes."""
    batch, channels, height, width = x_shape
    filters, its_channels, kernel_height, kernel_width = w_shape
    if its_channels != channels:
        raise ValueError(f"w has {its_channels} channels, x has {channels}")
    stride_y, stride_x = _pair("stride", stride)
    try:
        sides = tuple(padding)
    except TypeError:
        sides = (padding,) * 4
    if len(sides) == 2:
        sides = (sides[0], sides[0], sides[1], sides[1])
    if len(sides) != 4:
        raise ValueError(f"padding is {padding!r}, expected a number, two or four")
    windows = (0, 0, 0)
    if pool is not None:
        windows = tuple(pool) if hasattr(pool, "__len__") else (pool, pool)
        windows = (windows + (False,))[:3] if len(windows) in (2, 3) else windows
        if len(windows) != 3:
            raise ValueError(f"pool is {pool!r}, expected a size, two or three")
    return {
        "batch": batch,
        "channels": channels,
        "height": height,
        "width": width,
        "filters": filters,
        "kernel_height": kernel_height,
        "kernel_width": kernel_width,
        "stride_height": stride_y,
        "stride_width": stride_x,
        "padding_top": sides[0],
        "padding_bottom": sides[1],
        "padding_left": sides[2],
        "padding_right": sides[3],
        "has_bias": int(biased),
        "activation": activation,
        "pool_size": windows[0],
        "pool_stride": windows[1],
        "pool_ceil": int(windows[2]),
    }


def _find_plan(key):
    """(plan, shape of y) for the arguments of problem_of and of Plan."""
    try:
        return _plans[key]
    except KeyError:
        pass
    except TypeError:  # a list
        key = tuple(tuple(part) if isinstance(part, list) else part for part in key)
        if key in _plans:
            return _plans[key]
    device, accuracy, kernel, threads, capturable = key[7:]
    plan = Plan(
        problem_of(*key[:7]),
        device=device,
        accuracy=accuracy,
        kernel=kernel,
        threads=threads,
        capturable=capturable,
    )
    made = plan, (key[0][0], key[1][0], plan.output_height, plan.output_width)
    if len(_plans) >= _MOST_PLANS:
        _plans.pop(next(iter(_plans)), None)
    _plans[key] = made
    return made


def __getattr__(name):
    """convlab.torch, which needs PyTorch, is imported when it is used."""
    if name == "torch":
        return importlib.import_module("convlab.torch")
    raise AttributeError(f"module 'convlab' has no attribute {name!r}")


def _fail_place(array, x_array):
    raise ValueError(f"{array.name} is on {array.place()}, expected {x_array.place()}")


def conv2d(
    x,
    w,
    bias=None,
    stride=1,
    padding=0,
    activation=None,
    pool=None,
    accuracy="fp32",
    *,
    out=None,
    workspace=None,
    stream=None,
    kernel=None,
    threads=0,
    capturable=False,
):
    """Returns the convolution of x with the filters w, plus what follows it.

    Args:
      x: the input, (batch, channels, height, width).
      w: the filters, (filters, channels, kernel_height, kernel_width).
      bias: one number for each filter, or None.
      stride: a number from 1 to 4, or one for each direction (y, x).
      padding: rows and columns of zeros at each side: a number, (y, x), or
        (top, bottom, left, right).
      activation: None, "relu" or "tanh".
      pool: None, the size of max pooling's windows, which then do not overlap,
        or (size, stride) or (size, stride, ceil).
      accuracy: the loosest class that will do: "fp32", "fp32-normwise", "tf32"
        or "fp16".
      out: the array that y is written to; None: a new one.
      workspace: an array on the GPU of at least Plan.workspace_bytes bytes; None:
        a new one.
      stream: the number of a CUDA stream, as cudaStream_t; None: the one that
        PyTorch or CuPy has chosen, for their arrays, or else the default stream.
      kernel: the name of a kernel; None: the fastest by its estimate.
      threads: of the CPU; 0: one for each core.
      capturable: whether the call is captured into a CUDA graph, which some
        kernels cannot be.

    Raises:
      ConvlabError: with the library's message.
      TypeError, ValueError: for what are no such arrays.
    """
    x_array, w_array = Array("x", x, 4), Array("w", w, 4)
    device = x_array.device
    bias_array = None
    if bias is not None:
        bias_array = Array("bias", bias, 1)
        if bias_array.device != device:
            _fail_place(bias_array, x_array)
        if bias_array.shape[0] != w_array.shape[0]:
            raise ValueError(
                f"bias has {bias_array.shape[0]} numbers, w {w_array.shape[0]} filters"
            )
    if w_array.device != device:
        _fail_place(w_array, x_array)
    plan, shape = _find_plan(
        (
            x_array.shape,
            w_array.shape,
            bias is not None,
            stride,
            padding,
            activation,
            pool,
            device,
            accuracy,
            kernel,
            threads,
            capturable,
        )
    )
    if out is None:
        out = new_array(x, x_array, shape)
    out_array = Array("out", out, 4, written=True)
    if out_array.shape != shape or out_array.device != device:
        raise ValueError(
            f"out has shape {out_array.shape} on {out_array.place()}, "
            f"expected {shape} on {x_array.place()}"
        )
    workspace_array = None
    if plan.workspace_bytes > 0:
        # In floats, and enough to begin at a multiple of 256 bytes.
        if workspace is None:
            count = plan.workspace_bytes // 4 + 64
            workspace = new_array(x, x_array, (count,))
        workspace_array = Array("workspace", workspace, None, written=True)
    plan.run(
        x_array,
        w_array,
        bias_array,
        out_array,
        workspace_array,
        x_array.stream() if stream is None else stream,
    )
    return out
