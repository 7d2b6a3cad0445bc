"""Installs the wheel by unpacking it, and tests the package: wheel_test.py WHEEL

NumPy arrays on the CPU, arrays of other kinds, and errors; with a GPU and
PyTorch or CuPy, their arrays, too.
"""

import base64
import copy
import ctypes
import hashlib
import sys
import tempfile
import unittest
import zipfile

_folder = tempfile.TemporaryDirectory()
with zipfile.ZipFile(sys.argv[1]) as _wheel:
    _wheel.extractall(_folder.name)
    _names = _wheel.namelist()
    _records = [name for name in _names if name.endswith(".dist-info/RECORD")]
    _record = _wheel.read(_records[0]).decode().splitlines()
    _digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(_wheel.read(name)).digest())
        .decode()
        .rstrip("=")
        for name in _names
    }
sys.path.insert(0, _folder.name)

import convlab  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


def reference(x, w, bias, stride, padding, activation, pool):
    """The definition, in float64."""
    sy, sx = stride
    top, bottom, left, right = padding
    x = numpy.pad(
        x.astype(numpy.float64), ((0, 0), (0, 0), (top, bottom), (left, right))
    )
    kh, kw = w.shape[2:]
    oh, ow = (x.shape[2] - kh) // sy + 1, (x.shape[3] - kw) // sx + 1
    y = numpy.zeros((x.shape[0], w.shape[0], oh, ow))
    for p in range(kh):
        for q in range(kw):
            part = x[:, :, p : p + sy * oh : sy, q : q + sx * ow : sx]
            y += numpy.einsum("bchw,mc->bmhw", part[:, :, :oh, :ow], w[:, :, p, q])
    if bias is not None:
        y += bias[:, None, None]
    if activation == "relu":
        y = numpy.maximum(y, 0)
    elif activation == "tanh":
        y = numpy.tanh(y)
    if pool:
        size = pool
        ph, pw = oh // size, ow // size
        y = y[:, :, : ph * size, : pw * size].reshape(*y.shape[:2], ph, size, pw, size)
        y = y.max(axis=(3, 5))
    return y


class Wheel(unittest.TestCase):
    def test_record_names_each_file_with_its_digest(self):
        recorded = dict(line.split(",")[:2] for line in _record)
        self.assertEqual(sorted(recorded), sorted(_names))
        for name, digest in _digests.items():
            if not name.endswith("/RECORD"):
                self.assertEqual(recorded[name], "sha256=" + digest)


@unittest.skipIf(numpy is None, "there is no NumPy")
class OnTheCpu(unittest.TestCase):
    def setUp(self):
        self.random = numpy.random.default_rng(1)

    def uniform(self, *shape):
        return self.random.uniform(-1, 1, shape).astype(numpy.float32)

    def test_equals_the_definition(self):
        for stride, padding, activation, pool, biased in (
            ((1, 1), (0, 0, 0, 0), None, None, False),
            ((2, 2), (3, 3, 3, 3), "relu", 2, True),
            ((1, 3), (1, 0, 2, 1), "tanh", None, True),
        ):
            x, w = self.uniform(2, 3, 17, 20), self.uniform(8, 3, 5, 4)
            bias = self.uniform(8) if biased else None
            y = convlab.conv2d(
                x, w, bias, stride, padding, activation, pool, threads=2
            )
            expected = reference(x, w, bias, stride, padding, activation, pool)
            self.assertEqual(y.dtype, numpy.float32)
            numpy.testing.assert_allclose(y, expected, rtol=0, atol=2e-5)

    def test_writes_to_out(self):
        x, w = self.uniform(1, 1, 6, 6), self.uniform(2, 1, 3, 3)
        out = numpy.zeros((1, 2, 4, 4), numpy.float32)
        self.assertIs(convlab.conv2d(x, w, out=out), out)
        numpy.testing.assert_array_equal(out, convlab.conv2d(x, w))

    def test_takes_other_layouts_and_halves(self):
        x = self.random.integers(-3, 4, (2, 3, 9, 10)).astype(numpy.float32)
        w = self.random.integers(-3, 4, (5, 3, 3, 3)).astype(numpy.float32)
        bias = self.random.integers(-3, 4, 5).astype(numpy.float32)
        arguments = (2, 1, "relu", 2)
        expected = convlab.conv2d(x, w, bias, *arguments)
        x_last = numpy.ascontiguousarray(x.transpose(0, 2, 3, 1))
        for kind in (numpy.float32, numpy.float16):
            x_, w_, bias_ = (a.astype(kind) for a in (x, w, bias))
            y = convlab.conv2d(x_, w_, bias_, *arguments)
            self.assertEqual(y.dtype, kind)
            numpy.testing.assert_array_equal(y, expected)
            y = convlab.conv2d(x_last.astype(kind), w_, bias_, *arguments, layout="NHWC")
            self.assertEqual(y.dtype, kind)
            numpy.testing.assert_array_equal(y.transpose(0, 3, 1, 2), expected)

    def test_takes_dlpack(self):
        class Other:
            """An array of which nothing but DLPack is known."""

            def __init__(self, array):
                self.array = array

            def __dlpack__(self, stream=None):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        x, w = self.uniform(2, 2, 9, 9), self.uniform(3, 2, 3, 3)
        numpy.testing.assert_array_equal(
            convlab.conv2d(Other(x), Other(w)), convlab.conv2d(x, w)
        )

    def test_refuses_what_is_no_such_array(self):
        x, w = self.uniform(1, 2, 8, 8), self.uniform(3, 2, 3, 3)
        for message, arguments in (
            ("x is a list", ([[1.0]], w)),
            ("elements of type", (x.astype(numpy.float64), w)),
            ("x has gaps", (x[:, :, :, ::2], w)),
            ("x has shape", (x[0], w)),
            ("which is empty", (x[:0], w)),
            ("w has 1 channels", (x, w[:, :1].copy())),
            ("bias has 2", (x, w, numpy.zeros(2, numpy.float32))),
            ("stride is 5", (x, w, None, 5)),
            ("stride is", (x, w, None, (1, 2, 3))),
            ("padding is", (x, w, None, 1, (1, 2, 3))),
            ("activation is 'elu'", (x, w, None, 1, 0, "elu")),
            ("accuracy is 'fp8'", (x, w, None, 1, 0, None, None, "fp8")),
            ("expected an integer", (x, w, None, 1, 0.5)),
            ("w is float16 on the CPU, expected float32", (x, w.astype("f2"))),
        ):
            with self.assertRaisesRegex(
                (TypeError, ValueError, convlab.ConvlabError), message
            ):
                convlab.conv2d(*arguments)
        out = numpy.zeros((1, 3, 6, 6), numpy.float32)
        out.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "read-only"):
            convlab.conv2d(x, w, out=out)
        with self.assertRaisesRegex(convlab.ConvlabError, "no_such"):
            convlab.conv2d(x, w, kernel="no_such")

    def test_plans_say_what_they_are(self):
        plan = convlab.Plan({"height": 9, "width": 9, "kernel_height": 3})
        self.assertEqual((plan.output_height, plan.output_width), (7, 9))
        self.assertEqual(plan.kernel, "general")
        with self.assertRaisesRegex(ValueError, "no field 'heigth'"):
            convlab.Plan({"heigth": 9})
        with self.assertRaisesRegex(ValueError, "expected an integer"):
            convlab.Plan({"height": 1 << 64})


@unittest.skipIf(
    torch is None or not torch.cuda.is_available(), "there is no PyTorch with a GPU"
)
class OnAGpuWithPyTorch(unittest.TestCase):
    def test_equals_pytorch_in_float64(self):
        torch.manual_seed(1)
        for stride, padding in ((1, 0), (1, 1), (2, 3)):
            x = torch.rand(4, 3, 33, 35, device="cuda") - 0.5
            w = torch.rand(20, 3, 5, 5, device="cuda") - 0.5
            bias = torch.rand(20, device="cuda")
            y = convlab.conv2d(x, w, bias, stride, padding, "relu")
            expected = torch.relu(
                torch.nn.functional.conv2d(
                    x.double(), w.double(), bias.double(), stride, padding
                )
            )
            self.assertLess((y - expected).abs().max().item(), 2e-5)

    def test_works_in_the_current_stream(self):
        x = torch.ones(256, 8, 64, 64, device="cuda")
        w = torch.ones(16, 8, 3, 3, device="cuda")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(50):
                x = x * 1.0
            x = x * 2
            y = convlab.conv2d(x, w, padding=1)
            inside = y[:, :, 1:-1, 1:-1].clone()
        stream.synchronize()
        self.assertTrue(bool((inside == 144).all()))

    def test_is_captured_in_a_graph(self):
        x = torch.ones(2, 3, 16, 16, device="cuda")
        w = torch.ones(4, 3, 3, 3, device="cuda")
        convlab.conv2d(x, w, capturable=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = convlab.conv2d(x, w, capturable=True)
        x.fill_(2)
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(bool((y == 54).all()))

    def test_refuses_gradients(self):
        x = torch.ones(1, 1, 5, 5, device="cuda", requires_grad=True)
        with self.assertRaisesRegex(ValueError, "requires a gradient"):
            convlab.conv2d(x, x.detach())

    def test_refuses_arrays_of_two_devices(self):
        x, w = torch.ones(1, 1, 5, 5, device="cuda"), torch.ones(1, 1, 3, 3)
        with self.assertRaisesRegex(ValueError, "w is float32 on the CPU, expected float32 on GPU 0"):
            convlab.conv2d(x, w)


@unittest.skipIf(
    torch is None or not hasattr(torch.library, "register_fake"),
    "there is no PyTorch 2.4 or later",
)
class InPyTorch(unittest.TestCase):
    """On each device that there is."""

    def setUp(self):
        torch.manual_seed(1)
        self.tf32 = torch.backends.cudnn.allow_tf32
        torch.backends.cudnn.allow_tf32 = False
        gpu = torch.cuda.is_available()
        self.devices = ["cpu", "cuda"] if gpu else ["cpu"]

    def tearDown(self):
        torch.backends.cudnn.allow_tf32 = self.tf32

    @staticmethod
    def model(device):
        """LeNet-5's convolutions, one that Convlab does not take, and a linear layer."""
        nn = torch.nn
        return (
            nn.Sequential(
                nn.Conv2d(1, 6, 5, padding=2),
                nn.Tanh(),
                nn.MaxPool2d(2),
                nn.Conv2d(6, 16, 5),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(16, 8, 3, padding="same", dilation=2),
                nn.Flatten(),
                nn.Linear(8 * 25, 10),
            )
            .to(device)
            .eval()
        )

    def force(self, model, x):
        """Lets the model's changed layers use Convlab for what they meet."""
        changed = [
            module
            for module in model.modules()
            if isinstance(module, convlab.torch._Convolution)
        ]
        for module in changed:
            module._compare = lambda x, key, module=module: (
                module._convlab_faster.setdefault(key, True)
            )
        with torch.no_grad():
            model(x)
        for module in changed:
            del module._compare
        return changed

    def test_operator_equals_pytorch(self):
        for device in self.devices:
            x = torch.rand(2, 3, 17, 20, device=device) - 0.5
            w = torch.rand(7, 3, 3, 5, device=device) - 0.5
            b = torch.rand(7, device=device)
            y = convlab.torch.conv2d(x, w, b, (2, 1), (1, 2), "relu", 2)
            conv = torch.nn.functional.conv2d(x, w, b, (2, 1), (1, 2))
            expected = torch.nn.functional.max_pool2d(torch.relu(conv), 2)
            torch.testing.assert_close(y, expected, rtol=0, atol=1e-5)

    def test_operator_takes_channels_last_and_halves(self):
        for device in self.devices:
            x = torch.randint(-3, 4, (2, 3, 17, 20), device=device).float()
            w = torch.randint(-3, 4, (7, 3, 3, 5), device=device).float()
            expected = torch.nn.functional.conv2d(x, w, None, 2, 1)
            for kind in (torch.float32, torch.float16):
                for order in (torch.contiguous_format, torch.channels_last):
                    x_ = x.to(kind).to(memory_format=order)
                    w_ = w.to(kind).to(memory_format=order)
                    y = convlab.torch.conv2d(x_, w_, None, 2, 1)
                    self.assertTrue(y.is_contiguous(memory_format=order))
                    torch.testing.assert_close(y, expected.to(kind), rtol=0, atol=0)

    def test_operator_passes_pytorchs_own_checks(self):
        for device in self.devices:
            x, w = torch.rand(2, 3, 9, 9, device=device), torch.rand(4, 3, 3, 3).to(device)
            for pool in ([], [3, 2, 1]):
                for order in (torch.contiguous_format, torch.channels_last):
                    ordered = x.to(memory_format=order)
                    torch.library.opcheck(
                        torch.ops.convlab.conv2d.default,
                        (ordered, w, None, [1, 2], [1, 1, 0, 2], "tanh", pool, ""),
                        test_utils=("test_schema", "test_faketensor"),
                    )

    def test_accelerated_model_equals_the_model(self):
        for device in self.devices:
            model = self.model(device)
            names = list(model.state_dict())
            x = torch.rand(5, 1, 28, 28, device=device)
            with torch.no_grad():
                expected = model(x)
            accelerated = convlab.torch.accelerate(copy.deepcopy(model), x)
            self.assertEqual(list(accelerated.state_dict()), names)
            with torch.no_grad():
                torch.testing.assert_close(accelerated(x), expected)
            changed = self.force(accelerated, torch.rand(3, 1, 28, 28, device=device))
            self.assertEqual(len(changed), 2)
            self.assertEqual(
                [len(module._convlab_after) for module in changed], [2, 2]
            )
            # A model's first convolution has one channel: both orders are one.
            x = torch.rand(3, 1, 28, 28, device=device)
            with torch.no_grad():
                torch.testing.assert_close(accelerated(x), model(x))
                before = copy.deepcopy(accelerated)
                torch.testing.assert_close(before(x), model(x))

    def test_gradients_are_pytorchs(self):
        for device in self.devices:
            model = self.model(device)
            x = torch.rand(3, 1, 28, 28, device=device)
            accelerated = convlab.torch.accelerate(copy.deepcopy(model))
            self.force(accelerated, x)
            for each in (model, accelerated):
                each(x).square().sum().backward()
            for a, b in zip(model.parameters(), accelerated.parameters()):
                torch.testing.assert_close(b.grad, a.grad)

    def test_what_convlab_does_not_take_is_left(self):
        nn = torch.nn
        for conv in (
            nn.Conv2d(4, 4, 3, groups=2),
            nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
            nn.Conv2d(4, 4, 3, stride=5),
        ):
            model = nn.Sequential(conv, nn.ReLU())
            convlab.torch.accelerate(model)
            self.assertIs(type(model[0]), nn.Conv2d)
            self.assertIs(type(model[1]), nn.ReLU)
        # A ReLU that stands elsewhere, too, and a pooling with padding.
        relu = nn.ReLU()
        model = nn.Sequential(nn.Conv2d(1, 2, 3), relu, nn.Conv2d(2, 2, 3), relu)
        convlab.torch.accelerate(model)
        self.assertIs(model[1], relu)
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(3, 2, padding=1))
        convlab.torch.accelerate(model)
        self.assertIs(type(model[1]), nn.MaxPool2d)
        x = torch.rand(1, 1, 9, 9, dtype=torch.float64)
        self.assertEqual(model.double()(x).dtype, torch.float64)

    def test_is_compiled(self):
        for device in self.devices:
            model = self.model(device)
            x = torch.rand(3, 1, 28, 28, device=device)
            accelerated = convlab.torch.accelerate(copy.deepcopy(model))
            self.force(accelerated, x)
            with torch.no_grad():
                expected = model(x)
                backend = "eager" if device == "cpu" else "aot_eager"
                compiled = torch.compile(accelerated, backend=backend, fullgraph=True)
                torch.testing.assert_close(compiled(x), expected)

    def test_is_recorded_in_a_graph(self):
        if "cuda" not in self.devices:
            self.skipTest("there is no GPU")
        model = self.model("cuda")
        x = torch.rand(3, 1, 28, 28, device="cuda")
        accelerated = convlab.torch.accelerate(copy.deepcopy(model))
        self.force(accelerated, x)
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad():
            with torch.cuda.graph(graph):
                y = accelerated(x)
            x.copy_(torch.rand(3, 1, 28, 28, device="cuda"))
            graph.replay()
            torch.testing.assert_close(y, model(x))


unittest.main(argv=sys.argv[:1], verbosity=2)
