"""What accelerate finds in a model: convolutions, and what follows each."""

import contextlib
import os

from torch import fx, nn

ACTIVATIONS = {nn.ReLU: "relu", nn.Tanh: "tanh"}


def pool_of(module):
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


def is_taken(module):
    return (
        type(module) is nn.Conv2d
        and module.groups == 1
        and module.dilation == (1, 1)
        and module.padding_mode == "zeros"
        and max(module.stride) <= 4
    )


def _is_folded(module, conv):
    return (
        type(module) is nn.BatchNorm2d
        and module.running_mean is not None
        and module.num_features == conv.out_channels
    )


@contextlib.contextmanager
def in_mode(model, training):
    """Has all modules in that mode, and then in those that they were in."""
    before = {module: module.training for module in model.modules()}
    model.train(training)
    try:
        yield
    finally:
        for module, was_training in before.items():
            module.training = was_training


def _sequences(model, prefix=""):
    """Lists of names: modules of one parent that are called one after another.

    What forward does is found by tracing; of a module that cannot be traced, the
    children are, each by itself.
    """
    try:
        nodes = list(fx.Tracer().trace(model).nodes)
    except Exception:  # what forward raises when it meets no numbers
        for name, child in model.named_children():
            yield from _sequences(child, f"{prefix}{name}.")
        return
    calls = [node for node in nodes if node.op == "call_module"]
    targets = [node.target for node in calls]

    def parent(node):
        return node.target.rpartition(".")[0]

    for node in calls:
        names = []
        while targets.count(node.target) == 1:
            names.append(prefix + node.target)
            following = next(iter(node.users), None)
            if (
                len(node.users) != 1
                or following.op != "call_module"
                or following.args != (node,)
                or following.kwargs
                or parent(following) != parent(node)
            ):
                break
            node = following
        yield names


def _chain(model, names, alone):
    """(norm, the modules after it, their names) for a sequence's convolution."""
    conv, norm, after, passed = model.get_submodule(names[0]), None, [], []
    for name in names[1:]:
        module = model.get_submodule(name)
        if not alone(module):
            break
        if norm is None and not after and _is_folded(module, conv):
            norm = module
            continue
        first = not after and type(module) in ACTIVATIONS
        last = (
            type(module) is nn.MaxPool2d
            and not (after and type(after[-1]) is nn.MaxPool2d)
            and pool_of(module) is not None
        )
        if not (first or last):
            break
        after.append(module)
        passed.append(name)
    return norm, after, passed


def chains_of(model):
    """(norm, modules after it, their names) for convolutions, by their ids."""
    uses = {}
    for _, module in model.named_modules(remove_duplicate=False):
        uses[id(module)] = uses.get(id(module), 0) + 1

    def alone(module):
        return uses[id(module)] == 1 and not _has_hooks(module)

    found = []
    for training in (True, False):
        with in_mode(model, training):
            found.append({names[0]: names for names in _sequences(model) if names})
    chains = {}
    for first, names in found[0].items():
        conv = model.get_submodule(first)
        if is_taken(conv) and alone(conv):
            # What follows in both modes.
            names = os.path.commonprefix([names, found[1].get(first, [first])])
            chains[id(conv)] = _chain(model, names, alone)
    return chains
