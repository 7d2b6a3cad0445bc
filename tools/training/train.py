#!/usr/bin/env python3
"""Trains Convlab's networks on Fashion-MNIST and writes one safetensors file per network.

    python3 tools/training/train.py --data DIR --out common/weights/models

Needs PyTorch and numpy; uses a GPU where there is one. The recipes are the tables NETWORKS and RECIPES below;
README.md beside this file says why they are as they are and what came out.

What is fixed here, because other programs rely on it:
  * A network sees raw pixels, 0 to 255 as float32, enlarged from 28x28 in exact integers (enlarge()).
  * Convolutions are cross-correlations with stride 1 and no padding; LeNet-5's alone have a bias.
  * The first fully connected layer reads its input flattened in NCHW order.
  * Convolutions are stored in F32, fully connected layers in F16. The correct answers in the file's metadata are
    those of the stored weights, computed in float64 and confirmed in float32.
  * Weights are fitted to the training split alone. Its last 5,000 images are held out for validation. The test
    split decides nothing by its labels.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import gzip
import hashlib
import json
import math
import os
import struct
import sys
import time
from pathlib import Path

sys.path.append(os.path.join(sys.path[0], ".."))
from run_main import run_main

# cuBLAS reads this when it is first used; without it its results may differ from run to run.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as error:
    sys.exit(f"train.py needs PyTorch and numpy: {error}")

DEFAULT_DATA = "/usr/share/datasets/fashion-mnist"  # where Debian's dataset-fashion-mnist puts the files
DEFAULT_SEED = 408
CLASSES = 10
IMAGE_SIDE = 28
COUNTS = (100, 1000, 10000)  # correct answers are counted over the first so many test images
VALIDATION_IMAGES = 5000  # the last ones of the training split

# Two implementations that add in another order differ by rounding, some 1e-5 in a logit. No image's two largest logits
# may be so close that rounding swaps them, so a network below this distance is trained again with the next seed.
MIN_MARGIN = 2e-4
ATTEMPTS = 3


class TrainingError(Exception):
    """A run that cannot go on; the message is for the user."""


# ---------------------------------------------------------------------------------------------------------------------
# The networks


@dataclasses.dataclass(frozen=True)
class Convolve:
    outputs: int
    kernel: int
    bias: bool = False


@dataclasses.dataclass(frozen=True)
class Pool:
    """Max pooling; its stride is its side."""

    side: int
    ceil: bool = False  # whether the last window may extend beyond the image; otherwise what is left over is dropped

    def output(self, side: int) -> int:
        return -(-side // self.side) if self.ceil else side // self.side


@dataclasses.dataclass(frozen=True)
class Connect:
    outputs: int


ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu}
GAINS = {"tanh": 5 / 3, "relu": math.sqrt(2)}


@dataclasses.dataclass(frozen=True)
class Network:
    """A sequence of layers: Convolve, Pool, Connect, or an activation's name. Connect has a bias."""

    side: int  # height and width of the enlarged image
    layers: tuple[Convolve | Pool | Connect | str, ...]

    def named(self) -> list[tuple[str, Convolve | Pool | Connect | str]]:
        """The layers with their names in the file: conv1, conv2, fc1; other layers have none."""
        names = {Convolve: "conv", Connect: "fc"}
        counts = {Convolve: 0, Connect: 0}
        named = []
        for layer in self.layers:
            if type(layer) in counts:
                counts[type(layer)] += 1
                named.append((f"{names[type(layer)]}{counts[type(layer)]}", layer))
            else:
                named.append(("", layer))
        return named

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor's shape, in the order of the layers, which is also the order of the data in the file."""
        shapes = {}
        channels, side = 1, self.side
        for name, layer in self.named():
            if isinstance(layer, Convolve):
                shapes[f"{name}.weight"] = (layer.outputs, channels, layer.kernel, layer.kernel)
                channels, side = layer.outputs, side - layer.kernel + 1
            elif isinstance(layer, Connect):
                shapes[f"{name}.weight"] = (layer.outputs, channels * side * side)
                channels, side = layer.outputs, 1
            elif isinstance(layer, Pool):
                side = layer.output(side)
            if isinstance(layer, Connect) or (isinstance(layer, Convolve) and layer.bias):
                shapes[f"{name}.bias"] = (layer.outputs,)
        return shapes


HALVE = Pool(2)


def course(side: int, conv1: tuple[int, int], conv2: tuple[int, int], hidden: int) -> Network:
    """Two convolutions, of which the second has no activation, and two fully connected layers."""
    layers = (Convolve(*conv1), "tanh", HALVE, Convolve(*conv2), Connect(hidden), "tanh", Connect(CLASSES))
    return Network(side, layers)


FA17 = Network(28, (Convolve(50, 5), "tanh", HALVE, Connect(500), "tanh", Connect(CLASSES)))

NETWORKS = {
    "fa17-high": FA17,
    "fa17-low": FA17,
    "sp18": course(64, (6, 5), (16, 5), 140),
    "fa18": course(72, (12, 7), (24, 7), 160),
    "sp19": course(48, (6, 5), (16, 5), 140),
    "sp19-final": course(72, (6, 5), (16, 5), 140),
    "sp19-baseline": course(48, (12, 7), (24, 7), 160),
    "fa19": course(70, (12, 5), (24, 5), 160),
    "fa20": Network(
        86,
        (Convolve(4, 7), "relu", HALVE, Convolve(16, 7), "relu", Pool(4, ceil=True), Connect(32), "relu", Connect(CLASSES)),
    ),
    "lenet5": Network(
        32,
        (
            *(Convolve(6, 5, bias=True), "relu", HALVE),
            *(Convolve(16, 5, bias=True), "relu", HALVE),
            *(Connect(120), "relu", Connect(84), "relu", Connect(CLASSES)),
        ),
    ),
}


# ---------------------------------------------------------------------------------------------------------------------
# The recipes


@dataclasses.dataclass(frozen=True)
class Recipe:
    """AdamW over mini-batches; the rate rises linearly over 3 % of the steps, then falls to zero as a cosine.

    `rate` and `decay` are relative to a layer. A layer's learning rate is `rate` times the standard deviation of its
    initial weights, so that every layer, with 49 inputs or 20,184, moves by the same fraction of itself in a step. The
    weights shrink by the fraction `rate * decay` in a step.
    """

    epochs: int = 30
    batch: int = 256
    rate: float = 0.02
    decay: float = 0.01
    dropout: float = 0.2  # of the inputs of the fully connected layers
    shift: int = 1  # each image moves by up to this many pixels of the 28x28 image, in both directions
    flip: bool = True  # half of the images are mirrored left to right

    def describe(self) -> str:
        changes = [f"shifts of up to {self.shift} pixel"] if self.shift else []
        changes += ["left-right flips"] if self.flip else []
        return (
            f"{self.epochs} epochs of AdamW over the first {{images}} training images in batches of {self.batch}, cosine "
            f"schedule from {self.rate:g} and weight decay {self.decay:g}, both relative to a layer's initial scale, "
            f"dropout {self.dropout:g} before the fully connected layers, augmentation by "
            f"{' and '.join(changes) or 'nothing'}"
        )


@dataclasses.dataclass(frozen=True)
class FewImages:
    """Learns a handful of images by heart: the smallest number of them that reaches the wanted validation accuracy.

    The model is poor for an honest reason and yet sure of its answers. (One that is stopped early is unsure: its
    two largest logits are often so close that rounding decides.)
    """

    accuracy: float = 0.63
    tolerance: float = 0.01
    fewest: int = 10
    most: int = 300
    steps: int = 200  # each over all the images
    rate: float = 0.01

    def describe(self) -> str:
        return (
            f"{self.steps} full-batch steps of AdamW, cosine schedule from {self.rate:g} relative to a layer's initial scale, "
            f"over only the first {{images}} training images, the smallest number that comes within {self.tolerance:g} of "
            f"{self.accuracy:g} correct on the held-out last {VALIDATION_IMAGES:,} training images"
        )


RECIPES = {
    "fa17-high": Recipe(),
    "fa17-low": FewImages(),
    "fa18": Recipe(),
    "sp18": Recipe(),
    "sp19": Recipe(),
    "sp19-final": Recipe(),
    "sp19-baseline": Recipe(),
    "fa19": Recipe(),
    # The smallest network by far: it is unlikely to overfit, so nothing makes its task harder but the shifts.
    "fa20": Recipe(dropout=0.0, flip=False),
    # Small too, with 61,706 weights.
    "lenet5": Recipe(dropout=0.0, flip=False),
}


# ---------------------------------------------------------------------------------------------------------------------
# The images


@dataclasses.dataclass
class Split:
    """Images as uint8 [B, 28, 28] and labels as int64 [B], on the device."""

    images: torch.Tensor
    labels: torch.Tensor

    def __getitem__(self, part: slice) -> Split:
        return Split(self.images[part], self.labels[part])

    def __len__(self) -> int:
        return len(self.labels)


def read_idx(path: Path, magic: int) -> np.ndarray:
    """Reads a gzipped or plain IDX file of bytes: big-endian magic and dimensions, then the data."""
    found = next((p for p in (path, path.with_suffix("")) if p.is_file()), None)
    if found is None:
        raise TrainingError(f"neither {path} nor {path.stem} beside it is there; --data names the folder with Fashion-MNIST")
    try:
        data = gzip.decompress(found.read_bytes()) if found.suffix == ".gz" else found.read_bytes()
    except (OSError, EOFError) as error:
        raise TrainingError(f"{found} cannot be read: {error}") from error
    rank = magic & 0xFF
    start = 4 + 4 * rank
    if len(data) < start:
        raise TrainingError(f"{found} ends within its header ({len(data)} bytes)")
    number, *dimensions = struct.unpack_from(f">{1 + rank}I", data)
    if number != magic:
        raise TrainingError(f"{found} starts with 0x{number:08X}, not with 0x{magic:08X}")
    if len(data) - start != math.prod(dimensions):
        raise TrainingError(f"{found} holds {len(data) - start} bytes where {dimensions} asks for {math.prod(dimensions)}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(dimensions)


def read_split(folder: Path, name: str, device: torch.device) -> Split:
    images = read_idx(folder / f"{name}-images-idx3-ubyte.gz", 0x0803)
    labels = read_idx(folder / f"{name}-labels-idx1-ubyte.gz", 0x0801)
    if images.shape != (len(labels), IMAGE_SIDE, IMAGE_SIDE):
        raise TrainingError(f"{name} has images {images.shape} for {len(labels)} labels")
    return Split(torch.tensor(images, device=device), torch.tensor(labels, dtype=torch.int64, device=device))


def resize_table(side: int) -> tuple[list[int], list[int]]:
    """For each of `side` output rows (or columns): the first of the two input rows it mixes, and the second one's weight.

    The first one's weight is 2 * side minus the second one's.
    """
    positions = [divmod((2 * i + 1) * IMAGE_SIDE - side, 2 * side) for i in range(side)]
    return [first for first, _ in positions], [weight for _, weight in positions]


@functools.lru_cache(maxsize=None)
def device_resize_table(side: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """resize_table() for an image with one more row and column of zeros on every side."""
    first, weight = resize_table(side)
    return torch.tensor(first, device=device) + 1, torch.tensor(weight, dtype=torch.int32, device=device)


def enlarge(images: torch.Tensor, side: int) -> torch.Tensor:
    """uint8 [B, 28, 28] to uint8 [B, side, side]: bilinear, zero outside the image, exact integers, rounded down."""
    return mix(images, *device_resize_table(side, images.device))


def mix(images: torch.Tensor, first: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """enlarge() by the device's table."""
    unit = 2 * len(first)
    padded = F.pad(images.to(torch.int32), (1, 1, 1, 1))  # zeros stand for everything outside
    rows = (unit - weight)[:, None] * padded[:, first] + weight[:, None] * padded[:, first + 1]
    pixels = (unit - weight) * rows[:, :, first] + weight * rows[:, :, first + 1]
    return (pixels // (unit * unit)).to(torch.uint8)


# SHA-256 of the 10,000 test images' pixels in file order, enlarged to this side.
RESIZE_SHA256 = {
    28: "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
    32: "2639fd0fff08805edac12ba468b6f59c0eaed4b77edb2c28dadefe0a58baf3c5",
    48: "51af895368993b4dd45f865200cab92bb97d119f82cc879d8515c7177131c732",
    64: "4f74220d71aa835c1b355d6e31ff4b5ff63d1ec1029ba7a60b40f2d41ed35a0f",
    70: "13e32ec74f23a34f2aa625261850600108c6af5d777e87c1445d219b64bd5877",
    72: "70e91c81f6f8806ca4bab64748b977657a83894e5eb58cda8233f2b7a17abf14",
    86: "ca82d14f733d46568a4dbf94c30071dfe30894cbb3637fb92425063abcf69da4",
}


def check_resize(test: Split, side: int) -> None:
    digest = hashlib.sha256()
    for images in test.images.split(1000):
        digest.update(enlarge(images, side).cpu().numpy().tobytes())
    if digest.hexdigest() != RESIZE_SHA256[side]:
        raise TrainingError(
            f"the test images at {side}x{side} have SHA-256 {digest.hexdigest()}, not {RESIZE_SHA256[side]}: "
            "another data set than Fashion-MNIST, or a fault in enlarge()"
        )


def augment(images: torch.Tensor, shift: int, flip: bool) -> torch.Tensor:
    """Moves and mirrors each of the 28x28 images at random; what comes in from outside is zero."""
    count, device = len(images), images.device
    padded = F.pad(images, (shift, shift, shift, shift))
    line = torch.arange(IMAGE_SIDE, device=device)
    rows = line + torch.randint(2 * shift + 1, (count, 1), device=device)
    columns = line + torch.randint(2 * shift + 1, (count, 1), device=device)
    if flip:
        mirrored = torch.rand(count, 1, device=device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    image = torch.arange(count, device=device)
    return padded[image[:, None, None], rows[:, :, None], columns[:, None, :]]


# ---------------------------------------------------------------------------------------------------------------------
# The network's arithmetic


def convolve_by_definition(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """The cross-correlation as one matrix product, so that no fast algorithm's rounding is in the result."""
    outputs, _, side, _ = kernel.shape
    height, width = (n - side + 1 for n in x.shape[2:])
    return (kernel.flatten(1) @ F.unfold(x, side)).reshape(len(x), outputs, height, width)


def max_pool(x: torch.Tensor, pool: Pool) -> torch.Tensor:
    """In this form its gradient, too, is deterministic on a GPU; on the CPU PyTorch's own is, and five times as fast."""
    if x.device.type == "cpu":
        return F.max_pool2d(x, pool.side, ceil_mode=pool.ceil)
    count, channels = x.shape[:2]
    height, width = (pool.output(n) for n in x.shape[2:])
    down, right = (n * pool.side - m for n, m in zip((height, width), x.shape[2:]))
    if down or right:  # a negative number drops what is left over
        x = F.pad(x, (0, right, 0, down), value=-math.inf)
    return x.reshape(count, channels, height, pool.side, width, pool.side).amax((3, 5))


def forward(
    network: Network, weights: dict[str, torch.Tensor], pixels: torch.Tensor, dropout: float = 0.0, convolve=F.conv2d
) -> torch.Tensor:
    """Floating-point pixels [B, side, side] to logits [B, 10]; `weights` must be of the pixels' type."""
    x = pixels[:, None]
    for name, layer in network.named():
        if isinstance(layer, Convolve):
            x = convolve(x, weights[f"{name}.weight"])
            if layer.bias:
                x = x + weights[f"{name}.bias"][:, None, None]
        elif isinstance(layer, Connect):
            x = F.linear(F.dropout(x.flatten(1), dropout), weights[f"{name}.weight"], weights[f"{name}.bias"])
        elif isinstance(layer, Pool):
            x = max_pool(x, layer)
        else:
            x = ACTIVATIONS[layer](x)
    return x


@torch.no_grad()
def logits_of(network: Network, weights: dict[str, torch.Tensor], images: torch.Tensor, convolve=F.conv2d) -> torch.Tensor:
    """Logits [B, 10] of uint8 images [B, 28, 28], in the type of `weights`."""
    dtype = next(iter(weights.values())).dtype
    parts = (forward(network, weights, enlarge(part, network.side).to(dtype), convolve=convolve) for part in images.split(250))
    return torch.cat(list(parts))


def accuracy(network: Network, weights: dict[str, torch.Tensor], split: Split) -> float:
    return (logits_of(network, weights, split.images).argmax(1) == split.labels).float().mean().item()


# ---------------------------------------------------------------------------------------------------------------------
# Training


def initial_scales(network: Network) -> dict[str, float]:
    """The standard deviation of each weight tensor's initial values; a bias starts at zero and has its layer's scale.

    It keeps the signal's size through a layer: gain / sqrt(inputs), with the gain that suits the activation behind the
    layer. The first layer's is also divided by 255, because pixels are raw and tanh would saturate.
    """
    shapes = network.shapes()
    named = network.named()
    scales = {}
    for (name, layer), (_, behind) in zip(named, named[1:] + [("", None)]):
        if not name:
            continue
        gain = GAINS.get(behind, 1.0) if isinstance(behind, str) else 1.0
        if not scales:
            gain /= 255
        for tensor in (f"{name}.weight", f"{name}.bias"):
            if tensor in shapes:
                scales[tensor] = gain / math.sqrt(math.prod(shapes[f"{name}.weight"][1:]))
    return scales


def fit(
    network: Network, split: Split, seed: int, steps: int, batch: int, rate: float, decay: float, dropout: float, change, report
) -> dict[str, torch.Tensor]:
    """Trains from scratch and returns the weights, float32.

    `change` alters a batch of 28x28 images; `report(epoch, loss, weights)` is called after each epoch.
    """
    torch.manual_seed(seed)
    order = torch.Generator().manual_seed(seed)  # on the CPU, as are the initial values: the same for every device
    device = split.labels.device
    scales = initial_scales(network)
    weights, groups = {}, []
    for name, shape in network.shapes().items():
        values = torch.zeros(shape)
        if name.endswith(".weight"):
            values.normal_(0.0, scales[name], generator=order)
        weights[name] = values.to(device).requires_grad_()
        shrink = decay / scales[name] if name.endswith(".weight") else 0.0
        groups.append({"params": [weights[name]], "lr": rate * scales[name], "weight_decay": shrink})
    fused = {"fused": True} if device.type == "cuda" else {}  # not before PyTorch 2
    optimizer = torch.optim.AdamW(groups, **fused)
    warm_up = max(1, round(0.03 * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm_up, 0.5 + 0.5 * math.cos(math.pi * min(1.0, step / steps)))
    )

    batches_per_epoch = max(1, len(split) // batch)
    total_loss = torch.zeros((), device=device)
    for step in range(steps):
        position = step % batches_per_epoch
        if position == 0:
            shuffled = torch.randperm(len(split), generator=order).to(device)
        chosen = shuffled[position * batch : (position + 1) * batch]
        pixels = enlarge(change(split.images[chosen]), network.side).float()
        loss = F.cross_entropy(forward(network, weights, pixels, dropout), split.labels[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        total_loss += loss.detach()
        if position == batches_per_epoch - 1 or step == steps - 1:
            mean_loss = total_loss.item() / (position + 1)
            if not math.isfinite(mean_loss):
                raise TrainingError(f"the loss became {mean_loss} in step {step + 1}")
            report(step // batches_per_epoch + 1, mean_loss, weights)
            total_loss.zero_()
    return {name: values.detach() for name, values in weights.items()}


def train_recipe(network: Network, recipe: Recipe, train: Split, seed: int, limit: int, say):
    """Trains by an ordinary recipe; returns the weights and the number of images used."""
    part, validation = train[:-VALIDATION_IMAGES], train[-VALIDATION_IMAGES:]
    steps = recipe.epochs * (len(part) // recipe.batch)
    taken = min(steps, limit) if limit else steps
    start = time.monotonic()

    def report(epoch, loss, weights):
        seconds = time.monotonic() - start
        correct = accuracy(network, weights, validation)
        say(f"epoch {epoch}/{recipe.epochs}: loss {loss:.4f}, validation {correct:.4f}, {seconds:.1f} s")

    def change(images):
        return augment(images, recipe.shift, recipe.flip)

    weights = fit(network, part, seed, taken, recipe.batch, recipe.rate, recipe.decay, recipe.dropout, change, report)
    return weights, len(part)


def train_few_images(network: Network, recipe: FewImages, train: Split, seed: int, limit: int, say):
    """Searches the smallest number of images; returns the weights and that number."""
    validation = train[-VALIDATION_IMAGES:]
    steps = min(recipe.steps, limit) if limit else recipe.steps
    for count in range(recipe.fewest, recipe.most + 1):
        weights = fit(network, train[:count], seed, steps, count, recipe.rate, 0.0, 0.0, lambda images: images, lambda *_: None)
        correct = accuracy(network, weights, validation)
        say(f"{count} images: validation {correct:.4f}")
        if abs(correct - recipe.accuracy) <= recipe.tolerance:
            return weights, count
    raise TrainingError(f"no number of images up to {recipe.most} comes within {recipe.tolerance} of {recipe.accuracy}")


# ---------------------------------------------------------------------------------------------------------------------
# Storing and judging


def as_stored(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Convolutions in float32, fully connected layers in float16; refuses values that a file should not hold."""
    stored = {name: values.float() if name.startswith("conv") else values.half() for name, values in weights.items()}
    for name, values in stored.items():
        if not values.isfinite().all():
            raise TrainingError(f"{name} has values that are not finite in {values.dtype}")
        if name.startswith("conv") and ((values != 0) & (values.abs() < torch.finfo(torch.float32).tiny)).any():
            raise TrainingError(f"{name} has denormal values")
    return stored


@dataclasses.dataclass
class Judgement:
    correct: dict[int, int]  # of the first so many test images
    smallest_margin: float  # between an image's two largest logits, over all test images, in float64
    flipped: int  # test images with another answer in float32 than in float64
    rounding: float  # the largest difference between a logit in float32 and in float64


def judge(network: Network, stored: dict[str, torch.Tensor], test: Split) -> Judgement:
    """Runs the test split in float64 and in float32."""
    exact, rounded = (
        logits_of(network, {name: values.to(dtype) for name, values in stored.items()}, test.images, convolve_by_definition)
        for dtype in (torch.float64, torch.float32)
    )
    answers = exact.argmax(1)
    right = answers == test.labels
    largest = exact.topk(2, dim=1).values
    margin = (largest[:, 0] - largest[:, 1]).min().item()
    return Judgement(
        correct={count: int(right[:count].sum()) for count in COUNTS},
        smallest_margin=margin,
        flipped=int((rounded.argmax(1) != answers).sum()),
        rounding=(rounded - exact).abs().max().item(),
    )


def write_safetensors(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> None:
    """u64 length of the header, the header (JSON, keys sorted, padded with spaces), the data, little-endian.

    The data starts at a multiple of 8 bytes. The file appears under its name when it is complete.
    """
    types = {torch.float32: ("F32", "<f4"), torch.float16: ("F16", "<f2")}
    header, data = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        label, layout = types[values.dtype]
        content = values.cpu().numpy().astype(layout).tobytes()
        header[name] = {"data_offsets": [len(data), len(data) + len(content)], "dtype": label, "shape": list(values.shape)}
        data += content
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(struct.pack("<Q", len(text)) + text + data)
    unfinished.chmod(0o644)
    unfinished.replace(path)


def produce(name: str, train: Split, test: Split, out: Path, seed: int, limit: int) -> str:
    """Trains, judges and writes one network; returns its row for the table of results."""
    network, recipe = NETWORKS[name], RECIPES[name]
    run = train_few_images if isinstance(recipe, FewImages) else train_recipe

    def say(text):
        print(f"[{name}] {text}", file=sys.stderr, flush=True)

    check_resize(test, network.side)
    start = time.monotonic()
    for attempt in range(seed, seed + ATTEMPTS):
        weights, images = run(network, recipe, train, attempt, limit, say)
        seconds = time.monotonic() - start
        stored = as_stored(weights)
        result = judge(network, stored, test)
        if limit or (result.smallest_margin >= MIN_MARGIN and not result.flipped):
            break
        say(f"seed {attempt}: smallest margin {result.smallest_margin:.3g}, {result.flipped} answers differ in float32; not taken")
    else:
        raise TrainingError(f"{name}: with seeds {seed} to {attempt} the smallest margin is under {MIN_MARGIN:g}")

    metadata = {
        "network": name,
        "recipe": recipe.describe().format(images=f"{images:,}") + (f"; a trial of {limit} steps" if limit else ""),
        "seed": str(attempt),
        "smallest_margin": f"{result.smallest_margin:.3g}",
    }
    metadata.update({f"correct_{count}": str(correct) for count, correct in result.correct.items()})
    path = out / f"{name}.safetensors"
    write_safetensors(path, stored, metadata)
    counts = " ".join(f"{correct:>7}" for correct in result.correct.values())
    return (
        f"{name:<14} {attempt:>5} {counts} {result.smallest_margin:>9.3g} {result.rounding:>9.2g} "
        f"{path.stat().st_size:>9} {seconds:>7.1f}"
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Trains Convlab's networks on Fashion-MNIST and writes one safetensors file per network.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="the folder with the four IDX files, gzipped or plain")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the safetensors files, made if it is not there")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="names with commas between them")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="seed of the first attempt")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="what PyTorch calls the device")
    parser.add_argument("--steps", type=int, default=0, help="stop after so many steps: a trial of the machinery, not a result")
    arguments = parser.parse_args()
    arguments.networks = [name for name in arguments.networks.split(",") if name]
    unknown = [name for name in arguments.networks if name not in NETWORKS]
    if unknown or not arguments.networks:
        parser.error(f"--networks: {', '.join(unknown) or 'nothing'} is not among {', '.join(NETWORKS)}")
    if arguments.steps < 0 or arguments.seed < 0:
        parser.error("--steps and --seed must not be negative")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    # The same numbers at every run on the same kind of device and software; plain float32, no TF32.
    torch.use_deterministic_algorithms(True)
    if hasattr(torch.utils, "deterministic"):  # not before PyTorch 2
        torch.utils.deterministic.fill_uninitialized_memory = False  # a debugging aid that only costs time here
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        device = torch.device(arguments.device)
        train = read_split(arguments.data, "train", device)
        test = read_split(arguments.data, "t10k", device)
        arguments.out.mkdir(parents=True, exist_ok=True)
        counts = " ".join(f"{count:>7}" for count in COUNTS)
        print(f"{'network':<14} {'seed':>5} {counts} {'margin':>9} {'rounding':>9} {'bytes':>9} {'seconds':>7}", flush=True)
        for name in arguments.networks:
            print(produce(name, train, test, arguments.out, arguments.seed, arguments.steps), flush=True)
    except (TrainingError, OSError, RuntimeError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_main("train.py", main)
