"""Convlab in PyTorch: an operator, and models that use it.

    model = convlab.torch.accelerate(model, example)
    y = convlab.torch.conv2d(x, w, bias, stride=2, padding=3, activation="relu")

accelerate changes a model's Conv2d, each with the BatchNorm2d, the ReLU or Tanh
and the MaxPool2d that follow it. For each shape of input a changed layer takes the
way that was faster when it met the shape first: Convlab's, or PyTorch's own,
which it takes in all other cases, too: where gradients are wanted, under autocast,
while a BatchNorm2d is trained, and for what Convlab does not compute. print(model)
tells the times.

Weights stay between calls: those of a BatchNorm2d are multiplied into the
convolution's, and Convlab prepares them once. A change of a parameter that
PyTorch counts (_version), or of its place, is seen in the next call; one by way
of .data is not. CUDA graphs replay the weights of the last call outside of them.

conv2d is the operator torch.ops.convlab.conv2d, which torch.compile keeps as it
is and CUDA graphs record. It has no gradient.
"""

import time

import torch
from torch import nn

import convlab
from convlab._call import describe, run_tensor
from convlab._chains import ACTIVATIONS, chains_of, in_mode, is_taken, pool_of
from convlab._library import DEVICE_ERROR, OUT_OF_MEMORY
from convlab._operator import conv2d, is_channels_last

__all__ = ["accelerate", "conv2d"]


class _PassedOver(nn.BatchNorm2d):
    """A BatchNorm2d that the convolution before it has applied."""

    def forward(self, x):
        return x


def _fold(weight, bias, norm):
    """The weights and the bias of a convolution with the BatchNorm2d behind it."""
    scale = (norm.running_var.double() + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * norm.weight.double()
    moved = -norm.running_mean.double()
    if bias is not None:
        moved = moved + bias.double()
    moved = moved * scale
    if norm.bias is not None:
        moved = moved + norm.bias.double()
    folded = weight.double() * scale.view(-1, 1, 1, 1)
    return folded.to(weight.dtype).contiguous(), moved.to(weight.dtype)


class _Convolution(nn.Conv2d):
    """A Conv2d, and the modules that follow it, by Convlab where that is faster.

    An object becomes one by a change of its class, so that its parameters, their
    names in state_dict, and the module's name stay what they are, and so does a
    BatchNorm2d. The other modules after it are those that stood there; Identity
    takes their places.
    """

    def _take(self, norm, after, accuracy):
        activation, pool = None, None
        for module in after:
            if isinstance(module, nn.MaxPool2d):
                pool = pool_of(module)
            else:
                activation = ACTIVATIONS[type(module)]
        # In a tuple, so that they are not submodules.
        self._convlab_norm = (norm,)
        self._convlab_after = tuple(after)
        self._convlab_kept = None  # see _layer
        # What run_tensor asks for, see _remember.
        self._convlab_remembered = {}, ()
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
        norm = self._convlab_norm[0]
        if norm is not None:
            y = nn.BatchNorm2d.forward(norm, y)
        for module in self._convlab_after:
            y = module(y)
        return y

    def _by_convlab(self, x):
        if torch.compiler.is_compiling():
            return torch.ops.convlab.conv2d(
                x, *self._weights(), *self._convlab_operands
            )
        # Nothing wants a gradient here (_may_take).
        layer = self._layer(x.is_cuda)
        if layer is not None:
            y = layer(x)
            if self._convlab_faster.get(_kind_of(x)):
                self._remember(x, layer)
            return y
        return convlab.conv2d(
            x, *self._weights(), capturable=x.is_cuda, **self._convlab_arguments
        )

    def _places_of_all(self):
        """Where everything is that _weights depends on: dictionaries and names."""
        # Faster than by Module's __getattr__.
        own, norm = self._parameters, self._convlab_norm[0]
        if norm is None:
            return (own, "weight"), (own, "bias")
        its, statistics = norm._parameters, norm._buffers
        return (
            (own, "weight"),
            (own, "bias"),
            (its, "weight"),
            (its, "bias"),
            (statistics, "running_mean"),
            (statistics, "running_var"),
            # Training counts it, but not its changes of the other two.
            (statistics, "num_batches_tracked"),
        )

    def _parameters_of_all(self):
        return [place[name] for place, name in self._places_of_all()]

    def _weights(self):
        """The convolution's weights and bias as Convlab takes them."""
        norm = self._convlab_norm[0]
        if norm is None:
            return self.weight.contiguous(), self.bias
        return _fold(self.weight, self.bias, norm)

    def _state(self):
        """What changes with the parameters; None if PyTorch does not count it."""
        try:
            return [
                (parameter.data_ptr(), parameter._version)
                for parameter in self._parameters_of_all()
                if parameter is not None
            ]
        except RuntimeError:  # made in inference mode
            return None

    def _layer(self, cuda):
        """The convlab.Conv2d of the parameters as they are now.

        None if it is not up to date, and cannot be: in a stream that is being
        captured, and for parameters whose changes PyTorch does not count.
        """
        state = self._state()
        if state is None:
            return None
        kept = self._convlab_kept
        if kept is not None and kept[0] == state:
            return kept[1]
        if cuda and torch.cuda.is_current_stream_capturing():
            return None
        # Parameters that come back would pass for those of the next layer.
        self._convlab_remembered = {}, ()
        made = self._weights()
        if kept is not None and [a[0] for a in kept[0]] == [b[0] for b in state]:
            # Where they are, because graphs may have the addresses.
            _, layer, own = kept
            for to, value in zip(own, made):
                if to is not None:
                    to.copy_(value)
            layer.refresh()
        else:
            layer = convlab.Conv2d(*made, capturable=cuda, **self._convlab_arguments)
            own = [
                None if tensor is parameter else tensor
                for tensor, parameter in zip(made, (self.weight, self.bias))
            ]
        self._convlab_kept = state, layer, own
        return layer

    def __getstate__(self):
        return {
            **self.__dict__,
            "_convlab_kept": None,
            "_convlab_remembered": ({}, ()),
        }

    def _may_take(self, x):
        weight, norm = self.weight, self._convlab_norm[0]
        return (
            x.dim() == 4
            and x.dtype in (torch.float32, torch.float16)
            and weight.dtype == x.dtype
            and x.device == weight.device
            and not (
                torch.is_grad_enabled()
                and (
                    x.requires_grad
                    or any(
                        parameter is not None and parameter.requires_grad
                        for parameter in self._parameters_of_all()
                    )
                )
            )
            and (norm is None or not norm.training)
            and (x.is_contiguous() or is_channels_last(x))
            and not torch.is_autocast_enabled(x.device.type)
        )

    def _remember(self, x, layer):
        """Lets calls with such an x go forward's short way.

        It asks whether the parameters are what they were when the layer was made.
        """
        x_at = describe(x, False)
        entry = x_at and layer._entries.get(x_at[1:])
        if not entry:
            return
        watched = []
        for place, name in self._places_of_all():
            tensor = place[name]
            if tensor is None:
                watched += (place, name, None, None)
            else:
                watched += (place, name, tensor.data_ptr(), tensor._version)
        now = [
            (address, version)
            for address, version in zip(watched[2::4], watched[3::4])
            if address is not None
        ]
        kept = self._convlab_kept
        if kept is None or kept[1] is not layer or kept[0] != now:
            return  # another thread has changed a parameter since
        entries, before = self._convlab_remembered
        if watched[2::4] != list(before[2::4]) or watched[3::4] != list(before[3::4]):
            entries = {}
        # In one step, for other threads, and in another dictionary, because
        # replicas of DataParallel share the one that was there.
        self._convlab_remembered = {**entries, x_at[1:]: entry}, tuple(watched)

    def forward(self, x):
        if not torch.is_grad_enabled() and not torch.compiler.is_compiling():
            norm = self._convlab_norm[0]
            if (norm is None or not norm.training) and not torch.is_autocast_enabled(
                "cuda" if x.is_cuda else "cpu"
            ):
                entries, watched = self._convlab_remembered
                y = run_tensor(x, entries, watched)
                if y is not None:
                    return y
        if not self._may_take(x):
            return self._by_pytorch(x)
        key = _kind_of(x)
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
        except convlab.ConvlabError as error:
            if error.status == OUT_OF_MEMORY:
                return False  # there may be more the next time
            if error.status == DEVICE_ERROR:
                raise  # PyTorch's calls would fail, too, and not say why
            # No kernel takes it, or there is no GPU, or PyTorch says what is wrong.
            faster = False
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


def _kind_of(x):
    """What decides how an input is computed."""
    return x.shape, x.get_device(), x.dtype, x.is_contiguous()


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
    chains = chains_of(model)
    for module in list(model.modules()):
        if is_taken(module):
            norm, after, passed = chains.get(id(module), (None, [], []))
            module.__class__ = _Convolution
            module._take(norm, after, accuracy)
            if norm is not None:
                norm.__class__ = _PassedOver
            for name in passed:
                parent, _, leaf = name.rpartition(".")
                model.get_submodule(parent)._modules[leaf] = nn.Identity()
    if example:
        with in_mode(model, False), torch.no_grad():
            model(*example)
    return model
