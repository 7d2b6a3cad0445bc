"""Convolutions by libconvlab, on NumPy arrays and on arrays in GPU memory.

    import convlab
    y = convlab.conv2d(x, w, bias, stride=2, padding=3, activation="relu")

    layer = convlab.Conv2d(w, bias, stride=2, padding=3)  # weights that stay
    y = layer(x)

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

from convlab._arrays import (
    CHANNELS_LAST,
    HALVES,
    TORCH,
    bytes_of,
    check_shape,
    device_of,
    is_captured,
    kind_of,
    new_array,
    read,
    stream_of,
    wait_for_stream,
)
from convlab._call import describe
from convlab._library import (
    ConvlabError,
    Plan,
    aligned,
    count_gpus,
    room_for,
    version,
)

__all__ = ["Conv2d", "ConvlabError", "Plan", "conv2d", "count_gpus", "version"]
__version__ = version()

# Checked calls, by what their arrays and arguments are. The oldest goes when
# there are too many.
_calls = {}
_MOST_CALLS = 256
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


def _padded(x_shape, layout, nhwc):
    """x_shape as NCHW, and whether x is NHWC."""
    if layout == "NCHW":
        return x_shape, nhwc
    if layout != "NHWC" or nhwc:
        raise ValueError(
            f"layout is {layout!r}, expected 'NCHW', or 'NHWC' if x is in C order"
        )
    return (x_shape[0], x_shape[3], x_shape[1], x_shape[2]), True


class _Call:
    """A plan for calls with arrays of such shapes and places, which it has checked.

    `own` says whether PyTorch tells whose y's memory and the stream are.
    Attributes: plan, shape (of y), place (of x), on_gpu.
    """

    def __init__(
        self,
        x_shape,
        x_place,
        w_shape,
        w_place,
        bias_shape,
        bias_place,
        stride,
        padding,
        activation,
        pool,
        accuracy,
        layout,
        kernel,
        threads,
        capturable,
        own,
    ):
        check_shape("x", x_shape, 4)
        check_shape("w", w_shape, 4)
        self.place = x_place
        self._check_kind("w", w_place)
        if w_place & CHANNELS_LAST:
            raise ValueError("w is in another order, expected contiguous()")
        shape, nhwc = _padded(x_shape, layout, bool(x_place & CHANNELS_LAST))
        if bias_shape is not None:
            check_shape("bias", bias_shape, 1)
            self._check_kind("bias", bias_place)
            if bias_shape[0] != w_shape[0]:
                raise ValueError(
                    f"bias has {bias_shape[0]} numbers, w {w_shape[0]} filters"
                )
        halves = bool(x_place & HALVES)
        places = x_place & w_place & (TORCH if bias_shape is None else bias_place)
        self.on_gpu = device_of(x_place) >= 0
        self.plan = Plan(
            problem_of(
                shape,
                w_shape,
                bias_shape is not None,
                stride,
                padding,
                activation,
                pool,
                nhwc,
                halves,
            ),
            device=device_of(x_place),
            accuracy=accuracy or ("fp16" if halves else "fp32"),
            kernel=kernel,
            threads=threads,
            capturable=capturable,
            trusted=bool(self.on_gpu and own and places & TORCH),
        )
        height, width = self.plan.output_height, self.plan.output_width
        if layout == "NHWC":
            self.shape = (shape[0], height, width, w_shape[0])
        else:
            self.shape = (shape[0], w_shape[0], height, width)

    def _check_kind(self, name, place):
        if (place ^ self.place) & ~(CHANNELS_LAST | TORCH):
            raise ValueError(
                f"{name} is {kind_of(place)}, expected {kind_of(self.place)}"
            )

    def _check_out(self, out):
        """Where y goes, for what is not an array of the usual kind."""
        at = read("out", out, 4, written=True)
        self._check_kind("out", at[2])
        if at[1] != self.shape:
            raise ValueError(f"out has shape {at[1]}, expected {self.shape}")
        if (at[2] ^ self.place) & CHANNELS_LAST and min(self.shape[1:]) > 1:
            raise ValueError("out is in another order than x")
        return at

    def run(self, x, x_at, w, bias, out, y_at, workspace, stream, prepared=False):
        """y; w and bias are addresses, y_at describes out, others as in conv2d."""
        if out is None:
            out = new_array(x, self.place, self.shape)
            y_at = describe(out, True)
        if y_at is None or y_at[1] != self.shape or y_at[2] != self.place:
            y_at = self._check_out(out)
        space, space_bytes = None, 0
        if self.plan.workspace_bytes > 0:
            if workspace is None:
                workspace = _room(x, self.place, self.plan.workspace_bytes)
            at = describe(workspace, True) or read("workspace", workspace, None, True)
            space, space_bytes = aligned(at[0], bytes_of(at[1], at[2]))
        if stream is None and self.on_gpu:
            stream = stream_of(x, self.place)
        self.plan.run(
            x_at[0], w, bias, y_at[0], space, space_bytes, stream, prepared
        )
        return out


def _room(like, place, size):
    """A new array in which so many bytes lie aligned."""
    return new_array(like, place & ~CHANNELS_LAST, (room_for(size, place & HALVES),))


def _find_call(key):
    """The checked call for the arguments of _Call."""
    try:
        return _calls[key]
    except KeyError:
        pass
    except TypeError:  # a list
        key = tuple(tuple(part) if isinstance(part, list) else part for part in key)
        if key in _calls:
            return _calls[key]
    made = _Call(*key)
    if len(_calls) >= _MOST_CALLS:
        _calls.pop(next(iter(_calls)), None)
    _calls[key] = made
    return made


def __getattr__(name):
    """convlab.torch, which needs PyTorch, is imported when it is used."""
    if name == "torch":
        return importlib.import_module("convlab.torch")
    raise AttributeError(f"module 'convlab' has no attribute {name!r}")


def _is_own(out, y_at, workspace, stream):
    """Whether what is written is PyTorch's, if x is, and the stream, too."""
    if stream is not None or workspace is not None:
        return False
    return out is None or (y_at is not None and bool(y_at[2] & TORCH))


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
    x_at = describe(x, False) or read("x", x, 4)
    w_at = describe(w, False) or read("w", w, 4)
    bias_at = (None, None, None)
    if bias is not None:
        bias_at = describe(bias, False) or read("bias", bias, 1)
    y_at = None if out is None else describe(out, True)
    call = _find_call(
        (
            x_at[1],
            x_at[2],
            w_at[1],
            w_at[2],
            bias_at[1],
            bias_at[2],
            stride,
            padding,
            activation,
            pool,
            accuracy,
            layout,
            kernel,
            threads,
            capturable,
            _is_own(out, y_at, workspace, stream),
        )
    )
    return call.run(x, x_at, w_at[0], bias_at[0], out, y_at, workspace, stream)


class Conv2d:
    """A convolution whose weights stay: they are prepared in the first call.

        layer = convlab.Conv2d(w, bias, stride=2, padding=3)
        y = layer(x)

    The arguments are those of conv2d; bias is read in each call. On a GPU a call
    with inputs of another shape waits until the weights are prepared for it. While
    a CUDA graph is captured, weights that are not prepared yet are read as they
    are. Call `refresh` after w has changed.
    """

    def __init__(
        self,
        w,
        bias=None,
        stride=1,
        padding=0,
        activation=None,
        pool=None,
        accuracy=None,
        *,
        layout="NCHW",
        kernel=None,
        threads=0,
        capturable=False,
    ):
        self._w, self._bias = w, bias
        self._w_at = describe(w, False) or read("w", w, 4)
        self._bias_at = (None, None, None)
        if bias is not None:
            self._bias_at = describe(bias, False) or read("bias", bias, 1)
        self._arguments = (
            stride, padding, activation, pool, accuracy, layout, kernel, threads,
            capturable,
        )  # fmt: skip
        self._calls = {}  # by what x is: the call, and the prepared weights

    def __getstate__(self):
        return {**self.__dict__, "_calls": {}}

    def refresh(self):
        """Has the weights prepared anew, in the same memory, by the next calls."""
        for found in self._calls.values():
            found.is_fresh = False

    def __call__(self, x, *, out=None, workspace=None, stream=None):
        """y; the arguments are those of conv2d."""
        x_at = describe(x, False) or read("x", x, 4)
        y_at = None if out is None else describe(out, True)
        key = x_at[1], x_at[2], _is_own(out, y_at, workspace, stream)
        found = self._calls.get(key)
        if found is None:
            found = _Prepared(
                _find_call(
                    (x_at[1], x_at[2])
                    + self._w_at[1:3]
                    + self._bias_at[1:3]
                    + self._arguments
                    + (key[2],)
                )
            )
            # None goes, because graphs may hold its address.
            if len(self._calls) < _MOST_CALLS:
                self._calls[key] = found
        if not found.is_fresh and key in self._calls:
            found.refresh(self._w, self._w_at)
        return found.call.run(
            x,
            x_at,
            found.address if found.is_fresh else self._w_at[0],
            self._bias_at[0],
            out,
            y_at,
            workspace,
            stream,
            found.is_fresh,
        )


class _Prepared:
    """The weights of a call, once they are prepared.

    Attributes: call, address, is_fresh (whether it is that of prepared weights).
    """

    def __init__(self, call):
        self.call = call
        self.address = None
        self.is_fresh = False

    def refresh(self, w, w_at):
        """Prepares them, but not for a graph, whose replays would do it again."""
        place = w_at[2]
        if self.call.on_gpu and is_captured(w, place):
            return
        plan = self.call.plan
        if self.address is None:
            self._memory = _room(w, place, plan.prepared_bytes)
            self.address, self._bytes = aligned(
                read("prepared", self._memory, None, True)[0],
                plan.prepared_bytes + 256,
            )
        stream = stream_of(w, place) if self.call.on_gpu else None
        plan.prepare(w_at[0], self.address, self._bytes, stream)
        # Other streams may run next.
        if self.call.on_gpu:
            wait_for_stream(w, place)
        self.is_fresh = True
