"""Calls of known arrays: a plan, and what has been checked once."""

from convlab._arrays import (
    CHANNELS_LAST,
    HALVES,
    TORCH,
    bytes_of,
    check_shape,
    device_of,
    kind_of,
    new_array,
    read,
    stream_of,
)
from convlab._call import describe
from convlab._library import Plan, aligned, room_for

# Checked calls, by what their arrays and arguments are. The oldest goes when
# there are too many.
_calls = {}
MOST_CALLS = 256
# CONVLAB_NHWC, CONVLAB_HALF
_NHWC, _HALF = 1, 2


def _parts(name, value, lengths, expected):
    """(v,) of a number, and a tuple of a sequence of one of these lengths."""
    try:
        parts = (value,) if isinstance(value, str) else tuple(value)
    except TypeError:
        return (value,)
    if len(parts) not in lengths:
        raise ValueError(f"{name} is {value!r}, expected {expected}")
    return parts


def problem_of(
    x_shape, w_shape, biased, stride, padding, activation, pool, nhwc, halves
):
    """The problem, for Plan, of conv2d with arguments of these shapes (NCHW)."""
    batch, channels, height, width = x_shape
    filters, its_channels, kernel_height, kernel_width = w_shape
    if its_channels != channels:
        raise ValueError(f"w has {its_channels} channels, x has {channels}")
    strides = _parts("stride", stride, (2,), "a number or two")
    sides = _parts("padding", padding, (2, 4), "a number, two or four")
    if len(sides) < 4:
        sides = (sides[0], sides[0], sides[-1], sides[-1])
    windows = (0, 0)
    if pool is not None:
        windows = _parts("pool", pool, (2, 3), "a size, two numbers or three")
    return {
        "batch": batch,
        "channels": channels,
        "height": height,
        "width": width,
        "filters": filters,
        "kernel_height": kernel_height,
        "kernel_width": kernel_width,
        "stride_height": strides[0],
        "stride_width": strides[-1],
        "padding_top": sides[0],
        "padding_bottom": sides[1],
        "padding_left": sides[2],
        "padding_right": sides[3],
        "has_bias": int(biased),
        "activation": activation,
        "pool_size": windows[0],
        "pool_stride": windows[1 if len(windows) > 1 else 0],
        "pool_ceil": int(len(windows) > 2 and bool(windows[2])),
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

    def entry(self, x, w, bias, prepared, owner):
        """What run_tensor needs for such an x and a new y; w, bias are addresses.

        `owner` keeps what lies at them. None for calls that it does not know: of
        other libraries, in another order.
        """
        if not self.place & TORCH or self.place & CHANNELS_LAST:
            return None
        # Tensors of these shapes, of one element each: PyTorch makes another like
        # one sooner than one of a shape that it has to read.
        like = [
            x.new_empty(1).expand(shape)
            for shape in (
                self.shape,
                (room_for(self.plan.workspace_bytes, self.place & HALVES),),
            )
        ]
        return self.plan.entry(w, bias, *like, prepared, owner)

    def run(self, x, x_at, w, bias, out, y_at, workspace, stream, prepared=False):
        """y; w and bias are addresses, y_at describes out, others as in conv2d."""
        if out is None:
            out = new_array(x, self.place, self.shape)
            # Of PyTorch's the rest is known.
            y_at = (
                (out.data_ptr(), self.shape, self.place)
                if self.place & TORCH
                else describe(out, True)
            )
        if y_at is None or y_at[1] != self.shape or y_at[2] != self.place:
            y_at = self._check_out(out)
        space, space_bytes = None, 0
        if self.plan.workspace_bytes > 0:
            if workspace is None:
                workspace = room(x, self.place, self.plan.workspace_bytes)
            at = describe(workspace, True) or read("workspace", workspace, None, True)
            space, space_bytes = aligned(at[0], bytes_of(at[1], at[2]))
        if stream is None and self.on_gpu:
            stream = stream_of(x, self.place)
        self.plan.run(
            x_at[0], w, bias, y_at[0], space, space_bytes, stream, prepared
        )
        return out


def room(like, place, size):
    """A new array in which so many bytes lie aligned."""
    return new_array(like, place & ~CHANNELS_LAST, (room_for(size, place & HALVES),))


def find_call(key):
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
    if len(_calls) >= MOST_CALLS:
        _calls.pop(next(iter(_calls)), None)
    _calls[key] = made
    return made


def is_own(out, y_at, workspace, stream):
    """Whether what is written is PyTorch's, if x is, and the stream, too."""
    if stream is not None or workspace is not None:
        return False
    return out is None or (y_at is not None and bool(y_at[2] & TORCH))
