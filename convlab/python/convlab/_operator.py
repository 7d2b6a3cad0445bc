"""The operator torch.ops.convlab.conv2d, and the function that calls it."""

import torch

import convlab

if not hasattr(torch.library, "register_fake"):
    raise ImportError(
        f"convlab.torch needs PyTorch 2.4 or later, found {torch.__version__}"
    )

_library = torch.library.Library("convlab", "DEF")
_library.define(
    "conv2d(Tensor x, Tensor w, Tensor? bias, int[] stride, int[] padding, "
    "str activation, int[] pool, str accuracy) -> Tensor"
)


def is_channels_last(x):
    return not x.is_contiguous() and x.is_contiguous(
        memory_format=torch.channels_last
    )


def _compute(x, w, bias, stride, padding, activation, pool, accuracy):
    if not is_channels_last(x):
        x = x.contiguous()
    return convlab.conv2d(
        x.detach(),
        w.detach().contiguous(),
        None if bias is None else bias.detach().contiguous(),
        tuple(stride),
        tuple(padding),
        activation or None,
        tuple(pool) or None,
        accuracy or None,
        capturable=x.is_cuda,
    )


_library.impl("conv2d", _compute, "CUDA")
_library.impl("conv2d", _compute, "CPU")


def _windows(size, window, stride, ceil):
    return (size - window + (stride - 1 if ceil else 0)) // stride + 1


@torch.library.register_fake("convlab::conv2d", lib=_library)
def _shape(x, w, bias, stride, padding, activation, pool, accuracy):
    top, bottom, left, right = padding
    height = (x.shape[2] + top + bottom - w.shape[2]) // stride[0] + 1
    width = (x.shape[3] + left + right - w.shape[3]) // stride[1] + 1
    if pool:
        size, step, ceil = pool
        height = _windows(height, size, step, ceil)
        width = _windows(width, size, step, ceil)
    return torch.empty(
        (x.shape[0], w.shape[0], height, width),
        dtype=x.dtype,
        device=x.device,
        memory_format=(
            torch.channels_last if is_channels_last(x) else torch.contiguous_format
        ),
    )


def conv2d(
    x,
    w,
    bias=None,
    stride=1,
    padding=0,
    activation=None,
    pool=None,
    accuracy=None,
):
    """convlab.conv2d of tensors as an operator; the arguments are its."""
    problem = convlab.problem_of(
        x.shape, w.shape, bias is not None, stride, padding, activation, pool, 0, 0
    )
    return torch.ops.convlab.conv2d(
        x,
        w,
        bias,
        [problem["stride_height"], problem["stride_width"]],
        [problem["padding_" + side] for side in ("top", "bottom", "left", "right")],
        activation or "",
        [problem["pool_" + what] for what in ("size", "stride", "ceil")]
        if pool is not None
        else [],
        accuracy or "",
    )
