"""Unpacks the wheel and tests the package: wheel_test.py WHEEL DOCUMENT

NumPy arrays on the CPU, arrays of other kinds, errors, and the programs that stand
in the document (docs/library.md); the tests of torch_test.py, too.
"""

import base64
import contextlib
import copy
import ctypes
import hashlib
import io
import os
import pathlib
import re
import signal
import sys
import tempfile
import types
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
from convlab._arrays import DEVICE  # noqa: E402
from torch_test import *  # noqa: E402, F403: unittest.main finds their tests here

try:
    import numpy
except ImportError:
    numpy = None


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


def printed(title):
    """The program that stands in the document's section."""
    document = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    section = re.search(rf"^## {title}\n(.*?)^## ", document, re.M | re.S)[1]
    return "\n".join(re.findall("^    (.*)", section, re.M))


class Document(unittest.TestCase):
    @unittest.skipIf(numpy is None, "there is no NumPy")
    def test_python(self):
        names = {}
        exec(printed("Python"), names)
        self.assertEqual(names["y"].shape, (64, 16, 16, 16))

    @unittest.skipIf(not HAS_TORCH, "there is no PyTorch 2.4 or later")
    def test_pytorch(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(printed("PyTorch"), {})
        self.assertIn("pytorch", out.getvalue())


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

    def test_works_in_the_child_of_a_fork(self):
        x, w = self.uniform(8, 3, 40, 40), self.uniform(8, 3, 5, 5)
        expected = convlab.conv2d(x, w, threads=2)
        child = os.fork()
        if child == 0:
            same = False
            try:
                signal.alarm(60)  # instead of a test that hangs
                same = numpy.array_equal(convlab.conv2d(x, w, threads=2), expected)
            finally:
                os._exit(0 if same else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

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

    def test_weights_stay(self):
        x, w, bias = self.uniform(2, 3, 9, 10), self.uniform(5, 3, 3, 3), self.uniform(5)
        options = {"padding": 1, "activation": "relu", "pool": 2, "threads": 1}
        for kind in (numpy.float32, numpy.float16):
            x_, w_, bias_ = (a.astype(kind) for a in (x, w, bias))
            layer = convlab.Conv2d(w_, bias_, 2, **options)
            expected = convlab.conv2d(x_, w_, bias_, 2, **options)
            again = convlab.conv2d(x_, -w_, bias_, 2, **options)
            for _ in range(2):
                numpy.testing.assert_array_equal(layer(x_), expected)
            w_ *= -1  # seen after refresh
            numpy.testing.assert_array_equal(layer(x_), expected)
            layer.refresh()
            numpy.testing.assert_array_equal(layer(x_), again)
            out = numpy.zeros_like(expected)
            self.assertIs(copy.deepcopy(layer)(x_, out=out), out)
            numpy.testing.assert_array_equal(out, again)
            # Another shape of x.
            one = layer(x_[:1].copy())
            numpy.testing.assert_array_equal(one, again[:1])
        for message, arguments in (
            ("w is a list", ([[1.0]],)),
            ("w has shape", (w[0],)),
            ("bias is float16", (w, bias.astype("f2"))),
            ("stride is 7", (w, None, 7)),
        ):
            with self.assertRaisesRegex(
                (TypeError, ValueError, convlab.ConvlabError), message
            ):
                convlab.Conv2d(*arguments)(x)
        with self.assertRaisesRegex(ValueError, "out is read-only"):
            out = numpy.zeros_like(x)
            out.flags.writeable = False
            convlab.Conv2d(self.uniform(3, 3, 3, 3), padding=1)(x, out=out)

    def test_takes_buffers_of_other_kinds(self):
        x, w = self.uniform(1, 1, 5, 6), self.uniform(2, 1, 3, 3)
        expected = convlab.conv2d(x, w)
        y = convlab.conv2d(memoryview(x), memoryview(w))
        numpy.testing.assert_array_equal(y, expected)
        with self.assertRaisesRegex(TypeError, "elements of type"):
            convlab.conv2d(x.astype(">f4"), w)
        with self.assertRaisesRegex(TypeError, "x is a bytes"):
            convlab.conv2d(b"1234", w)

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
            ("padding is 'same'", (x, w, None, 1, "same")),
            ("pool is 'max'", (x, w, None, 1, 0, None, "max")),
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
        with self.assertRaisesRegex(convlab.ConvlabError, "no_such.*general"):
            convlab.conv2d(x, w, kernel="no_such")
        with self.assertRaisesRegex(ValueError, "kernel is 7, expected a name"):
            convlab.conv2d(x, w, kernel=7)
        with self.assertRaisesRegex(convlab.ConvlabError, "halves are of class fp16"):
            halves = x.astype("f2"), w.astype("f2")
            convlab.conv2d(*halves, accuracy="fp32")
        one = self.uniform(2, 2, 1, 1)
        before = x.copy()
        with self.assertRaisesRegex(convlab.ConvlabError, "y, which .* overlaps x"):
            convlab.conv2d(x, one, out=x)
        floats = numpy.zeros(x.nbytes // 4 + 1, numpy.float32).view(numpy.uint8)
        moved = floats[1 : 1 + x.nbytes].view(numpy.float32).reshape(x.shape)
        with self.assertRaisesRegex(convlab.ConvlabError, "multiple of 4"):
            convlab.conv2d(moved, one)
        numpy.testing.assert_array_equal(x, before)

    def test_plans_say_what_they_are(self):
        plan = convlab.Plan({"height": 9, "width": 9, "kernel_height": 3})
        self.assertEqual((plan.output_height, plan.output_width), (7, 9))
        self.assertEqual(plan.kernel, "general")
        self.assertEqual(plan.estimated_cudnn_ns, 0)
        with self.assertRaisesRegex(TypeError, "cannot be copied"):
            copy.copy(plan)
        many = {"batch": 1 << 30, "channels": 1 << 30, "filters": 1 << 30}
        for status, message, fields, options in (
            (1, "the batch is 2147483648, expected 1 to", {"batch": 1 << 31}, {}),
            (1, "too large to be counted in 64 bits", many, {}),
            (3, "GPU", {}, {"device": 1000}),
        ):
            with self.assertRaisesRegex(convlab.ConvlabError, message) as raised:
                convlab.Plan(fields, **options)
            self.assertEqual(raised.exception.status, status)
        with self.assertRaisesRegex(ValueError, "no field 'heigth'"):
            convlab.Plan({"heigth": 9})
        with self.assertRaisesRegex(ValueError, "too large"):
            convlab.Plan({"height": 1 << 64})
        wide = convlab.Plan({"width": numpy.int64(9)})
        self.assertEqual(wide.output_width, 9)


class WithoutAnArray(unittest.TestCase):
    def test_weights_of_others_on_a_gpu_stay_as_they_are(self):
        class Numbas:
            """An array on a GPU, of a library of which no memory is allocated."""

            __cuda_array_interface__ = {}

        call = types.SimpleNamespace(on_gpu=True)
        prepared = convlab._Prepared(call)
        prepared.refresh(Numbas(), (256, (5, 3, 3, 3), DEVICE))
        self.assertFalse(prepared.is_fresh)

    @unittest.skipUnless(HAS_TORCH, "there is no PyTorch")
    def test_errors_that_say_nothing_about_speed_are_not_remembered(self):
        import torch

        x = torch.rand(1, 3, 9, 9)
        for status, outcome in ((2, {False}), (4, set()), (5, None)):
            model = convlab.torch.accelerate(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3)))

            def fail(_, status=status):
                raise convlab.ConvlabError(status, "as told")

            model[0]._by_convlab = fail
            with torch.no_grad():
                if outcome is None:
                    with self.assertRaisesRegex(convlab.ConvlabError, "as told"):
                        model(x)
                else:
                    self.assertEqual(model(x).shape, (1, 4, 7, 7))
                    self.assertEqual(set(model[0]._convlab_faster.values()), outcome)


unittest.main(argv=sys.argv[:1], verbosity=2)
