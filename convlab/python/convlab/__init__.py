"""Convolutions by libconvlab, on NumPy arrays and on arrays in GPU memory.

    import convlab
    y = convlab.conv2d(x, w, bias, stride=2, padding=3, activation="relu")

x has the shape (batch, channels, height, width), w (filters, channels,
kernel_height, kernel_width), bias (filters,), all without gaps and of float32 or
all of float16. Tensors of PyTorch in channels_last are taken as they are, and so
are other arrays of shape (batch, height, width, channels), with layout="NHWC".
What is computed, how exactly, and the limits stand in convlab.h and docs/library.md.

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
# CONVLAB_NHWC, CONVLAB_HALF
_NHWC, _HALF = 1, 2


def _pair(name, value):
    """(v, v) of a number, and (a, b) of a sequence of two."""
    try:
        pair = tuple(value)
    except TypeError:
        return value, value
    if len(pair) != 2:
        raise ValueError(f"{name} is {value!r}, expected a number or two")
    return pair


def problem_of(
    x_shape, w_shape, biased, stride, padding, activation, pool, nhwc, halves
):
    """The problem, for Plan, of conv2d with arguments of these shapes (NCHW)."""
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
        "format": (_NHWC if nhwc else 0) + (_HALF if halves else 0),
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
    device, accuracy, kernel, threads, capturable = key[9:]
    plan = Plan(
        problem_of(*key[:9]),
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


def _fail_unlike(array, x_array):
    raise ValueError(f"{array.name} is {array.kind()}, expected {x_array.kind()}")


def conv2d(
    x,
    w,
    bias=None,
    stride=1,
    padding=0,
    activation=None,
    pool=None,
    accuracy=None,
    *,
    layout="NCHW",
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
        or "fp16"; None: "fp32", and "fp16" for float16.
      layout: of x and y: "NCHW" or "NHWC".
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
    device, halves = x_array.device, x_array.halves
    if w_array.device != device or w_array.halves != halves:
        _fail_unlike(w_array, x_array)
    if w_array.channels_last:
        raise ValueError("w is in another order, expected contiguous()")
    x_shape = x_array.shape
    nhwc = x_array.channels_last
    if layout != "NCHW":
        if layout != "NHWC" or nhwc:
            raise ValueError(
                f"layout is {layout!r}, expected 'NCHW', or 'NHWC' if x is in C order"
            )
        x_shape = (x_shape[0], x_shape[3], x_shape[1], x_shape[2])
        nhwc = True
    bias_array = None
    if bias is not None:
        bias_array = Array("bias", bias, 1)
        if bias_array.device != device or bias_array.halves != halves:
            _fail_unlike(bias_array, x_array)
        if bias_array.shape[0] != w_array.shape[0]:
            raise ValueError(
                f"bias has {bias_array.shape[0]} numbers, w {w_array.shape[0]} filters"
            )
    plan, shape = _find_plan(
        (
            x_shape,
            w_array.shape,
            bias is not None,
            stride,
            padding,
            activation,
            pool,
            nhwc,
            halves,
            device,
            accuracy or ("fp16" if halves else "fp32"),
            kernel,
            threads,
            capturable,
        )
    )
    if layout == "NHWC":
        shape = (shape[0], shape[2], shape[3], shape[1])
    if out is None:
        out = new_array(x, x_array, shape, halves)
    out_array = Array("out", out, 4, written=True)
    if out_array.device != device or out_array.halves != halves:
        _fail_unlike(out_array, x_array)
    if out_array.shape != shape:
        raise ValueError(f"out has shape {out_array.shape}, expected {shape}")
    if out_array.channels_last != x_array.channels_last and min(shape[1:]) > 1:
        raise ValueError("out is in another order than x")
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
