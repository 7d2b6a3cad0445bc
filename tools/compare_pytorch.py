#!/usr/bin/env python3
"""Compares whole networks with PyTorch's, where PyTorch is installed.

    tools/compare_pytorch.py --networks fa19,lenet5 --batch 1,100,10000 --bundle DIR --json FILE

Each network, with its trained weights, runs in float32 (TF32 off) eagerly, compiled, and each of these as one CUDA
graph, in NCHW and channels last. First the labels of all test images are compared with those that the bundle's
classify writes, and the number of right ones with that in the weights' metadata. Then the same rows as those of
`bench --network` are measured: from bytes in host memory to labels there (host), the same in device memory (device),
and from enlarged images as floats on the device to logits there (floats). --bundle names an unpacked bundle, whose own
rows come from its benchmark just before; without it there are PyTorch's rows alone. The record has the benchmark's
schema.

Exit status: 2 for wrong arguments, 3 if PyTorch or the GPU is missing, 1 for other errors.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import itertools
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run_main import run_main

ROOT = Path(__file__).resolve().parent.parent
PATHS = ("host", "device", "floats")
TURN = 10  # calls in one piece, before it is another's turn


class Missing(Exception):
    """PyTorch or the GPU is not there; the message is for the user."""


class Failure(Exception):
    """A comparison that cannot go on; the message is for the user."""


MODES = ("eager", "compiled", "graph", "compiled-graph")


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}\n")


def whole_numbers(text: str) -> list[int]:
    parts = text.split(",")
    numbers = [int(part) for part in parts if part.isdecimal() and int(part) > 0]
    if len(set(numbers)) < len(parts):
        raise argparse.ArgumentTypeError(f"'{text}', expected whole numbers of at least 1, each once, separated by commas")
    return numbers


def some_modes(text: str) -> list[str]:
    modes = text.split(",")
    if not set(modes) <= set(MODES):
        raise argparse.ArgumentTypeError(f"'{text}', expected some of {', '.join(MODES)}, separated by commas")
    return modes


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        prog="compare_pytorch.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", default="fa18,sp19,fa19,fa20,lenet5", help="names, separated by commas")
    parser.add_argument("--batch", type=whole_numbers, default="1,10,100,1000,10000", help="images of a call, separated by commas")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: PyTorch's choice")
    parser.add_argument("--seconds", type=float, default=1, help="of each row")
    parser.add_argument("--samples", type=int, default=20, help="but at least so many calls")
    parser.add_argument("--modes", type=some_modes, default=",".join(MODES), help="some of these")
    parser.add_argument("--autotune", action="store_true", help="compile with max-autotune, which takes minutes for each row")
    parser.add_argument("--weights", type=Path, default=ROOT / "common/weights/models", help="folder of the safetensors files")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("CONVLAB_DATA", "/usr/share/datasets/fashion-mnist"),
        help="folder with Fashion-MNIST's test images",
    )
    parser.add_argument("--bundle", type=Path, help="an unpacked bundle with bin/classify and bin/bench")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args(arguments)
    options.networks = options.networks.split(",")
    if not options.seconds > 0 or options.samples < 1 or options.threads < 0:
        parser.error("--seconds and --samples: expected more than 0; --threads: expected 0 or more")
    return options


def read_safetensors(path: Path, torch) -> tuple[dict, dict[str, str]]:
    """The tensors, as float32, and the metadata."""
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    types = {"F32": torch.float32, "F16": torch.float16}
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        flat = torch.frombuffer(bytearray(content[begin:end]), dtype=types[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"]).to(torch.float32)
    return tensors, metadata


def make_model(network, tensors, train, torch):
    """The network as PyTorch's own layers, from floats [B, 1, side, side] to logits."""
    nn = torch.nn
    layers, channels, flat = [], 1, False
    for name, layer in network.named():
        if isinstance(layer, train.Convolve):
            layers.append(nn.Conv2d(channels, layer.outputs, layer.kernel, bias=layer.bias))
            channels = layer.outputs
        elif isinstance(layer, train.Pool):
            layers.append(nn.MaxPool2d(layer.side, ceil_mode=layer.ceil))
        elif isinstance(layer, train.Connect):
            if not flat:
                layers.append(nn.Flatten())
                flat = True
            layers.append(nn.Linear(tensors[f"{name}.weight"].shape[1], layer.outputs))
        else:
            layers.append({"tanh": nn.Tanh, "relu": nn.ReLU}[layer]())
        if name:
            with torch.no_grad():
                layers[-1].weight.copy_(tensors[f"{name}.weight"])
                if layers[-1].bias is not None:
                    layers[-1].bias.copy_(tensors[f"{name}.bias"])
    return nn.Sequential(*layers).eval().requires_grad_(False)


class Bench:
    def __init__(self, options, torch, train):
        self.options, self.torch, self.train = options, torch, train
        self.gpu = options.device == "gpu"
        self.device = torch.device("cuda" if self.gpu else "cpu")
        self.rows: list[dict] = []
        self.omissions: list[dict] = []
        if self.gpu:
            properties = torch.cuda.get_device_properties(0)
            l2 = getattr(properties, "L2_cache_size", 64 << 20)  # older versions do not tell
            self.flush = torch.empty(2 * l2, dtype=torch.uint8, device=self.device)

    def compare_labels(self, name, network, model, metadata, test):
        """Fails unless the labels of the test images are ours."""
        torch = self.torch
        images = test.images.split(1000)
        labels = torch.cat([model(self.train.enlarge(part, network.side)[:, None].float()).argmax(1) for part in images])
        correct = int((labels == test.labels).sum())
        expected = metadata.get(f"correct_{len(test)}")
        if expected is not None and correct != int(expected):
            raise Failure(f"{name}: PyTorch labels {correct} of {len(test)} images right, and the weights' metadata says {expected}")
        if self.options.bundle is None:
            print(f"{name}: {correct} of {len(test)} labels are right, as in the weights' metadata", flush=True)
            return
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "labels.npy"
            weights = self.options.weights / f"{name}.safetensors"
            run([self.options.bundle / "bin/classify", name, self.options.data, "--weights", weights,
                 "--device", self.options.device, "--out", out])
            import numpy

            ours = numpy.load(out).reshape(-1)
        differing = int((labels.cpu().numpy() != ours).sum()) if len(ours) == len(labels) else len(labels)
        if differing:
            raise Failure(f"{name}: {differing} of {len(labels)} labels differ from those of classify")
        print(f"{name}: all {len(labels)} labels are those of classify, {correct} of them right", flush=True)

    def our_rows(self, name):
        """The rows of the bundle's benchmark."""
        if self.options.bundle is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "ours.json"
            run([self.options.bundle / "bin/bench", "--network", name, "--device", self.options.device, "--nopeers",
                 "--batch", ",".join(map(str, self.options.batch)), "--threads", self.options.threads,
                 "--seconds", self.options.seconds, "--samples", max(3, self.options.samples), "--json", out])
            rows = json.loads(out.read_text())["rows"]
        for row in rows:
            self.rows.append(row)
            print_row(row)

    def functions(self, network, model, images, mode, layout, pool):
        """{path: function}; those of the paths device and floats only queue work. Graphs share the pool's memory."""
        torch, train = self.torch, self.train

        def floats(x):
            return model(x)

        # Not looked up in a call: neither a graph nor a compiler takes that.
        table = train.device_resize_table(network.side, self.device)

        def labels(x):
            x = train.mix(x, *table)[:, None].float().contiguous(memory_format=layout)
            return model(x).argmax(1).to(torch.uint8)

        if mode.startswith("compiled"):
            kind = "max-autotune-no-cudagraphs" if self.options.autotune else "default"
            floats, labels = (torch.compile(one, mode=kind, dynamic=False) for one in (floats, labels))
        enlarged = train.enlarge(images, network.side)[:, None].float().contiguous(memory_format=layout)
        inputs = {"floats": (enlarged, floats), "device": (images.clone(), labels)}
        called = {}
        for path, (x, function) in inputs.items():
            called[path] = self.graphed(function, x, pool) if mode.endswith("graph") else (lambda x=x, f=function: f(x))
        host_images = images.cpu()
        if not self.gpu:
            return {"host": lambda: labels(host_images)}
        source = inputs["device"][0]
        pinned = host_images.pin_memory()

        def host():
            # What a data loader with pinned memory does.
            pinned.copy_(host_images)
            source.copy_(pinned, non_blocking=True)
            return called["device"]().cpu()

        return {"host": host, **called}

    def graphed(self, function, x, pool):
        """A function that replays the call as a CUDA graph."""
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                function(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            out = function(x)

        # A graph does not keep what it reads.
        def replay(_x=x):
            graph.replay()
            return out

        return replay

    def time(self, path, function):
        """One time in nanoseconds."""
        torch = self.torch
        if path == "host":
            start = time.perf_counter_ns()
            function()
            return time.perf_counter_ns() - start
        # As the benchmark does it: from a cold L2, queued while the GPU waits.
        self.flush.zero_()
        torch.cuda._sleep(1_000_000)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        end.synchronize()
        return round(start.elapsed_time(end) * 1e6)

    def measure(self, name, network, model, images):
        """The rows of all modes for these images, in turns."""
        torch = self.torch
        calls = []
        pool = torch.cuda.graph_pool_handle() if self.gpu else None
        layouts = {"": torch.contiguous_format, ", channels last": torch.channels_last}
        # A model for each, since to() changes it.
        models = {name: copy.deepcopy(model).to(memory_format=layout) for name, layout in layouts.items()}
        for mode, layout in itertools.product(self.options.modes, layouts):
            if not self.gpu and mode.endswith("graph"):
                continue
            provider = f"pytorch {mode}{layout}"
            try:
                functions = self.functions(network, models[layout], images, mode, layouts[layout], pool)
                for path, function in functions.items():
                    for _ in range(3):
                        function()
                    calls.append((path, provider, function, []))
                if self.gpu:
                    torch.cuda.synchronize()
            except Exception as error:  # of the compiler, which has many kinds
                reason = " ".join(str(error).split())[:300]
                self.omissions.append(
                    {"network": name, "images": len(images), "provider": provider, "path": "", "reason": reason}
                )
                print(f"not measured: {name}, {len(images)} images, {provider}: {reason}", file=sys.stderr, flush=True)
        for path in PATHS:
            own = [call for call in calls if call[0] == path]
            start, enough = time.monotonic(), not own
            while not enough:
                for _, _, function, samples in own:
                    samples.extend(self.time(path, function) for _ in range(TURN))
                passed = time.monotonic() - start
                enough = len(own[0][3]) >= self.options.samples and passed >= self.options.seconds * len(own)
            rows = [row_of(name, len(images), *call) for call in own]
            clock = sm_clock_mhz() if self.gpu else None
            for row in sorted(rows, key=lambda row: row["p50_us"]):
                if clock:
                    row["sm_clock_mhz"] = clock
                self.rows.append(row)
                print_row(row)

    def run(self):
        torch, train = self.torch, self.train
        test = train.read_split(Path(self.options.data), "t10k", self.device)
        print(f"{'network':14} {'images':>7} {'path':7} {'n':>6} {'p50 us':>10} {'p90':>10} {'p99':>10} {'least':>10} {'images/s':>11}  by")
        for name in self.options.networks:
            network = train.NETWORKS[name]
            tensors, metadata = read_safetensors(self.options.weights / f"{name}.safetensors", torch)
            model = make_model(network, tensors, train, torch).to(self.device)
            with torch.inference_mode():
                self.compare_labels(name, network, model, metadata, test)
                self.our_rows(name)
                for count in self.options.batch:
                    repeats = math.ceil(count / len(test))
                    images = test.images.repeat(repeats, 1, 1)[:count].contiguous()
                    self.measure(name, network, model, images)
                    if "compiled" in ",".join(self.options.modes) and hasattr(torch, "compiler"):
                        torch.compiler.reset()

    def record(self, started):
        torch = self.torch
        record = {
            "schema": "convlab.network/1",
            "command": ["compare_pytorch.py", *sys.argv[1:]],
            "started": started,
            "method": "PyTorch in float32, TF32 off; path host: host clock; paths device and floats: device events, L2 "
            "flushed before each; percentiles by nearest rank",
            "device": self.options.device,
            "threads": torch.get_num_threads(),
            "peer": f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}",
            "rows": self.rows,
            "omissions": self.omissions,
        }
        if self.gpu:
            record["gpu"] = {"name": torch.cuda.get_device_name(0)}
        return record


def sm_clock_mhz():
    """The current clock of the multiprocessors; None if the driver's tool does not tell."""
    command = ["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits"]
    try:
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0])
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
        return None


def run(command):
    """Runs a program of the bundle, whose output is shown where it fails."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["no output"]
        raise Failure(f"{command[0]} ended with status {done.returncode}: {lines[-1]}")


def row_of(name, count, path, provider, _, samples):
    samples = sorted(samples)

    def percentile(share):  # by nearest rank
        return samples[max(0, math.ceil(share * len(samples) - 1e-9) - 1)] * 1e-3

    return {
        "network": name,
        "images": count,
        "provider": provider,
        "path": path,
        "p50_us": percentile(0.5),
        "p90_us": percentile(0.9),
        "p99_us": percentile(0.99),
        "least_us": samples[0] * 1e-3,
        "images_per_s": count / (percentile(0.5) * 1e-6),
        "samples": len(samples),
    }


def print_row(row):
    print(
        f"{row['network']:14} {row['images']:7} {row['path']:7} {row['samples']:6} {row['p50_us']:10.1f} {row['p90_us']:10.1f} "
        f"{row['p99_us']:10.1f} {row['least_us']:10.1f} {row['images_per_s']:11.0f}  {row['provider']}",
        flush=True,
    )


def compare(options):
    try:
        import numpy  # noqa: F401  train.py needs it
        import torch
    except ImportError as error:
        raise Missing(f"PyTorch or numpy is not installed: {error}") from error
    if options.device == "gpu" and not torch.cuda.is_available():
        raise Missing("PyTorch finds no GPU it can use; --device cpu measures without one")
    sys.path.insert(0, str(ROOT / "tools/training"))
    workspace = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    import train

    if workspace is None:  # train.py asks for less, which repeats bit for bit but may be slower
        os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)

    for name in options.networks:
        if name not in train.NETWORKS:
            raise Failure(f"there is no network '{name}': expected some of {', '.join(train.NETWORKS)}")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # times cuDNN's algorithms, as ours does
    if options.threads:
        torch.set_num_threads(options.threads)
    started = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    bench = Bench(options, torch, train)
    try:
        bench.run()
    except train.TrainingError as error:
        raise Failure(str(error)) from error
    if options.json is not None:
        part = options.json.with_name(options.json.name + ".part")
        part.write_text(json.dumps(bench.record(started), indent=1) + "\n")
        os.replace(part, options.json)


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    try:
        compare(options)
    except Missing as error:
        print(f"compare_pytorch.py: {error}", file=sys.stderr)
        return 3
    except Failure as error:
        print(f"compare_pytorch.py: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"compare_pytorch.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_main("compare_pytorch.py", lambda: main(sys.argv[1:]))
