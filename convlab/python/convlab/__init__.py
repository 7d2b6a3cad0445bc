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

from convlab._arrays import can_allocate, is_captured, read, stream_of, wait_for_stream
from convlab._call import describe, run_tensor
from convlab._calls import MOST_CALLS, find_call, is_own, problem_of, room
from convlab._library import ConvlabError, Plan, aligned, count_gpus, version

__all__ = ["Conv2d", "ConvlabError", "Plan", "conv2d", "count_gpus", "version"]
__version__ = version()


def __getattr__(name):
    """convlab.torch, which needs PyTorch, is imported when it is used."""
    if name == "torch":
        return importlib.import_module("convlab.torch")
    raise AttributeError(f"module 'convlab' has no attribute {name!r}")


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
    call = find_call(
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
            is_own(out, y_at, workspace, stream),
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
    are; so are those of Numba and JAX on a GPU, always. Call `refresh` after w has
    changed.
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
        # By (shape, place) of PyTorch's x: what run_tensor needs for a new y.
        self._entries = {}

    def __getstate__(self):
        return {**self.__dict__, "_calls": {}, "_entries": {}}

    def refresh(self):
        """Has the weights prepared anew, in the same memory, by the next calls."""
        self._entries.clear()
        for found in self._calls.values():
            found.is_fresh = False

    def __call__(self, x, *, out=None, workspace=None, stream=None):
        """y; the arguments are those of conv2d."""
        if out is None and workspace is None and stream is None:
            y = run_tensor(x, self._entries, ())
            if y is not None:
                return y
        x_at = describe(x, False) or read("x", x, 4)
        y_at = None if out is None else describe(out, True)
        key = x_at[1], x_at[2], is_own(out, y_at, workspace, stream)
        found = self._calls.get(key)
        if found is None:
            found = _Prepared(
                find_call(
                    (x_at[1], x_at[2])
                    + self._w_at[1:3]
                    + self._bias_at[1:3]
                    + self._arguments
                    + (key[2],)
                )
            )
            # None goes, because graphs may hold its address.
            if len(self._calls) < MOST_CALLS:
                self._calls[key] = found
        if not found.is_fresh and key in self._calls:
            found.refresh(self._w, self._w_at)
            if found.is_fresh and key[2]:
                entry = found.call.entry(
                    x, found.address, self._bias_at[0], True, (found, self._bias)
                )
                if entry is not None:
                    self._entries[key[:2]] = entry
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
        """Prepares them, but not for a graph, whose replays would do it again.

        Nor for a library whose memory on a GPU is not allocated here.
        """
        place = w_at[2]
        if not can_allocate(w, place) or self.call.on_gpu and is_captured(w, place):
            return
        plan = self.call.plan
        if self.address is None:
            self._memory = room(w, place, plan.prepared_bytes)
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
