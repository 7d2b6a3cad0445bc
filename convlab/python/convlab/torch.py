"""Convlab in PyTorch: an operator, and models that use it.

    model = convlab.torch.accelerate(model, example)
    y = convlab.torch.conv2d(x, w, bias, stride=2, padding=3, activation="relu")

accelerate changes a model's Conv2d, each with the ReLU or Tanh and the MaxPool2d
that follow it in a Sequential. For each shape of input a changed layer takes the
way that was faster when it met the shape first: Convlab's, or PyTorch's own,
which it takes in all other cases, too: where gradients are wanted, under autocast,
and for what Convlab does not compute. print(model) tells the times.

conv2d is the operator torch.ops.convlab.conv2d, which torch.compile keeps as it
is and CUDA graphs record. It has no gradient.
"""

import time

import torch
from torch import nn

import convlab

if not hasattr(torch.library, "register_fake"):
    raise ImportError(
        f"convlab.torch needs PyTorch 2.4 or later, found {torch.__version__}"
    )

__all__ = ["accelerate", "conv2d"]

_library = torch.library.Library("convlab", "DEF")
_library.define(
    "conv2d(Tensor x, Tensor w, Tensor? bias, int[] stride, int[] padding, "
    "str activation, int[] pool, str accuracy) -> Tensor"
)


def _is_channels_last(x):
    return not x.is_contiguous() and x.is_contiguous(
        memory_format=torch.channels_last
    )


def _compute(x, w, bias, stride, padding, activation, pool, accuracy):
    if not _is_channels_last(x):
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
            torch.channels_last if _is_channels_last(x) else torch.contiguous_format
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


class _Convolution(nn.Conv2d):
    """A Conv2d, and the modules that follow it, by Convlab where that is faster.

    An object becomes one by a change of its class, so that its parameters, their
    names in state_dict, and the module's name stay what they are. The modules
    after it are those that stood there; Identity takes their places.
    """

    def _take(self, after, accuracy):
        activation, pool = None, None
        for module in after:
            if isinstance(module, nn.MaxPool2d):
                pool = _pool_of(module)
            else:
                activation = _ACTIVATIONS[type(module)]
        # In a tuple, so that they are not submodules.
        self._convlab_after = tuple(after)
        self._convlab_arguments = {
            "stride": self.stride,
            "padding": _padding_of(self),
            "activation": activation,
            "pool": pool,
            "accuracy": accuracy,
        }
        self._convlab_operands = (
            list(self.stride),
            list(_padding_of(self)),
            activation or "",
            [] if pool is None else [int(value) for value in pool],
            accuracy or "",
        )
        self._convlab_faster = {}  # by what the input is
        self._convlab_times = {}  # what decided it: (Convlab's, PyTorch's) ns

    def _by_pytorch(self, x):
        y = super().forward(x)
        for module in self._convlab_after:
            y = module(y)
        return y

    def _by_convlab(self, x):
        if torch.compiler.is_compiling():
            return torch.ops.convlab.conv2d(
                x, self.weight, self.bias, *self._convlab_operands
            )
        with torch.no_grad():
            return convlab.conv2d(
                x,
                self.weight.contiguous(),
                self.bias,
                capturable=x.is_cuda,
                **self._convlab_arguments,
            )

    def _may_take(self, x):
        weight = self.weight
        return (
            x.dim() == 4
            and x.dtype in (torch.float32, torch.float16)
            and weight.dtype == x.dtype
            and x.device == weight.device
            and not (
                torch.is_grad_enabled()
                and (
                    x.requires_grad
                    or weight.requires_grad
                    or (self.bias is not None and self.bias.requires_grad)
                )
            )
            and (x.is_contiguous() or _is_channels_last(x))
            and not torch.is_autocast_enabled(x.device.type)
        )

    def forward(self, x):
        if not self._may_take(x):
            return self._by_pytorch(x)
        key = (tuple(x.shape), x.get_device(), x.dtype, x.is_contiguous())
        faster = self._convlab_faster.get(key)
        if faster is None and not torch.compiler.is_compiling():
            faster = self._compare(x, key)
        return self._by_convlab(x) if faster else self._by_pytorch(x)

    def _compare(self, x, key):
        """Whether Convlab is faster, which it remembers."""
        if x.is_cuda and torch.cuda.is_current_stream_capturing():
            return False
        if x.numel() == 0:
            return False
        try:
            ours = _median_ns(self._by_convlab, x)
        except convlab.ConvlabError:
            faster = False  # no kernel takes it
        else:
            theirs = _median_ns(self._by_pytorch, x)
            faster = ours < theirs
            self._convlab_times[key] = ours, theirs
        self._convlab_faster[key] = faster
        return faster

    def extra_repr(self):
        """Conv2d's, and for each input what was faster."""
        return "; ".join(
            [super().extra_repr()]
            + [
                f"{tuple(key[0])}: convlab {ours / 1e3:.1f} us, "
                f"pytorch {theirs / 1e3:.1f} us"
                for key, (ours, theirs) in self._convlab_times.items()
            ]
        )


_ACTIVATIONS = {nn.ReLU: "relu", nn.Tanh: "tanh"}


def _median_ns(function, x):
    """Of a call that does not wait for the last one, with the GPU's work."""
    cuda = x.is_cuda
    calls = 10 if cuda else 1
    times = []
    with torch.no_grad():
        function(x)
        for _ in range(5):
            if cuda:
                torch.cuda.synchronize(x.device)
            begin = time.perf_counter_ns()
            for _ in range(calls):
                function(x)
            if cuda:
                torch.cuda.synchronize(x.device)
            times.append(time.perf_counter_ns() - begin)
    return sorted(times)[2] / calls


def _padding_of(conv):
    if conv.padding == "valid":
        return (0, 0, 0, 0)
    if conv.padding == "same":
        left, right, top, bottom = conv._reversed_padding_repeated_twice
        return (top, bottom, left, right)
    vertical, horizontal = conv.padding
    return (vertical, vertical, horizontal, horizontal)


def _pool_of(module):
    """(size, stride, ceil), or None if Convlab has no such pooling."""
    numbers = []
    for name in ("kernel_size", "stride", "padding", "dilation"):
        value = getattr(module, name)
        pair = (value, value) if isinstance(value, int) else tuple(value)
        if pair[0] != pair[1]:
            return None
        numbers.append(pair[0])
    size, stride, padding, dilation = numbers
    if padding != 0 or dilation != 1 or module.return_indices:
        return None
    return (size, stride, bool(module.ceil_mode))


def _has_hooks(module):
    return any(
        getattr(module, name, None)
        for name in (
            "_forward_hooks",
            "_forward_pre_hooks",
            "_backward_hooks",
            "_backward_pre_hooks",
        )
    )


def _is_taken(module):
    return (
        type(module) is nn.Conv2d
        and module.groups == 1
        and module.dilation == (1, 1)
        and module.padding_mode == "zeros"
        and max(module.stride) <= 4
    )


def accelerate(model, *example, accuracy=None):
    """Makes a model use Convlab where that is faster, and returns the model.

    Args:
      model: a Module, which is changed: its Conv2d take inputs and parameters as
        before, also in state_dict.
      example: the arguments of a call. The model is called with them once, in
        evaluation mode and without gradients, so that each layer knows for their
        shapes what is faster; without them it finds out in the first calls.
        torch.compile and CUDA graphs use what is known, and PyTorch elsewhere.
      accuracy: the loosest class that will do, as for convlab.conv2d.
    """
    uses = {}
    for _, module in model.named_modules(remove_duplicate=False):
        uses[id(module)] = uses.get(id(module), 0) + 1

    def alone(module):
        return uses[id(module)] == 1 and not _has_hooks(module)

    after = {}  # of a convolution, by its id
    for sequence in list(model.modules()):
        if type(sequence) is not nn.Sequential:
            continue
        names = list(sequence._modules)
        for i, name in enumerate(names):
            conv = sequence._modules[name]
            if not _is_taken(conv) or not alone(conv):
                continue
            taken = []
            for following in names[i + 1 : i + 3]:
                module = sequence._modules[following]
                first = not taken and type(module) in _ACTIVATIONS
                last = (
                    type(module) is nn.MaxPool2d
                    and not (taken and type(taken[-1]) is nn.MaxPool2d)
                    and _pool_of(module) is not None
                )
                if not (first or last) or not alone(module):
                    break
                taken.append(module)
                sequence._modules[following] = nn.Identity()
            after[id(conv)] = taken
    for module in list(model.modules()):
        if _is_taken(module):
            module.__class__ = _Convolution
            module._take(after.get(id(module), []), accuracy)
    if example:
        was_training = {module: module.training for module in model.modules()}
        model.eval()
        with torch.no_grad():
            model(*example)
        for module, training in was_training.items():
            module.training = training
    return model
