"""Tests with PyTorch's tensors, on the CPU and a GPU; wheel_test.py runs them."""

import copy
import unittest

import convlab

try:
    import torch
except ImportError:
    torch = None

__all__ = ["HAS_TORCH", "InPyTorch", "OnAGpuWithPyTorch"]

HAS_TORCH = torch is not None and hasattr(torch.library, "register_fake")


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


@unittest.skipIf(not HAS_TORCH, "there is no PyTorch 2.4 or later")
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
            module._convlab_faster.clear()
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

    @staticmethod
    def normalized(device):
        """A stem as ResNet's, which is no Sequential, with statistics of its own."""
        nn = torch.nn

        class Stem(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 8, 5, stride=2, padding=2, bias=False)
                self.norm = nn.BatchNorm2d(8)
                self.relu = nn.ReLU(inplace=True)
                self.pool = nn.MaxPool2d(2)
                self.last = nn.Conv2d(8, 8, 3, padding=1)
                self.last_norm = nn.BatchNorm2d(8, affine=False)

            def forward(self, x):
                x = self.pool(self.relu(self.norm(self.conv(x))))
                return x + self.last_norm(self.last(x))

        stem = Stem().to(device)
        with torch.no_grad():
            for _ in range(3):
                stem(torch.rand(4, 3, 20, 20, device=device))
            stem.norm.weight.uniform_(0.5, 2)
            stem.norm.bias.uniform_(-1, 1)
        return stem.eval()

    def test_batch_norm_is_folded(self):
        for device in self.devices:
            model = self.normalized(device)
            x = torch.rand(4, 3, 20, 20, device=device)
            accelerated = convlab.torch.accelerate(copy.deepcopy(model), x)
            self.assertEqual(list(accelerated.state_dict()), list(model.state_dict()))
            changed = self.force(accelerated, x)
            self.assertEqual(
                [len(module._convlab_after) for module in changed], [2, 0]
            )
            self.assertIs(changed[0]._convlab_norm[0], accelerated.norm)

            def check():
                with torch.no_grad():
                    torch.testing.assert_close(
                        accelerated(x), model(x), rtol=1e-5, atol=1e-5
                    )

            check()
            # Changes are seen, of parameters and of statistics.
            for change in (
                lambda m: m.conv.weight.mul_(-2),
                lambda m: m.norm.running_mean.add_(1),
                lambda m: m.last.bias.add_(3),
                lambda m: m.load_state_dict(
                    {name: t * 0.5 for name, t in m.state_dict().items()}
                ),
            ):
                with torch.no_grad():
                    change(model)
                    change(accelerated)
                check()
            # In training both are PyTorch's, statistics included.
            for each in (model, accelerated):
                each.train()
                each(x).square().sum().backward()
                each.eval()
            for a, b in zip(model.parameters(), accelerated.parameters()):
                torch.testing.assert_close(b.grad, a.grad)
            for a, b in zip(model.buffers(), accelerated.buffers()):
                torch.testing.assert_close(b, a)
            check()
            check_copy = copy.deepcopy(accelerated)
            with torch.no_grad():
                torch.testing.assert_close(check_copy(x), accelerated(x))

    def test_weights_stay(self):
        for device in self.devices:
            x = torch.rand(2, 3, 12, 12, device=device)
            conv = torch.nn.Conv2d(3, 5, 3, padding=1).to(device)
            accelerated = convlab.torch.accelerate(torch.nn.Sequential(conv))
            (changed,) = self.force(accelerated, x)
            with torch.no_grad():
                accelerated(x)
                layer = changed._convlab_kept[1]
                accelerated(x)
                self.assertIs(changed._convlab_kept[1], layer)
                address = next(iter(layer._calls.values())).address
                conv.weight.zero_()
                y = accelerated(x)
                # The same memory, because graphs may read it.
                self.assertEqual(next(iter(layer._calls.values())).address, address)
                torch.testing.assert_close(
                    y, conv.bias.view(1, 5, 1, 1).expand_as(y), rtol=0, atol=0
                )
            with torch.inference_mode():
                made = torch.nn.Conv2d(3, 5, 3).to(device)
            accelerated = convlab.torch.accelerate(torch.nn.Sequential(made))
            (changed,) = self.force(accelerated, x)
            with torch.inference_mode():
                made.weight.fill_(1)
                made.bias.zero_()
                y = accelerated(x)
                torch.testing.assert_close(y[0, 0, 0, 0], x[0, :, :3, :3].sum())

    def test_calls_again_see_every_change(self):
        nn = torch.nn
        for device in self.devices:
            x = torch.rand(2, 3, 12, 12, device=device)
            conv = nn.Conv2d(3, 5, 3, bias=False).to(device)
            model = convlab.torch.accelerate(nn.Sequential(conv))
            (changed,) = self.force(model, x)
            replaced = nn.Parameter(torch.rand_like(conv.weight))
            bias = nn.Parameter(torch.rand(5, device=device))
            with torch.no_grad():
                for change in (
                    lambda: conv.weight.mul_(2),
                    lambda: setattr(conv.weight, "data", replaced.detach() + 1),
                    lambda: setattr(conv, "weight", replaced),
                    lambda: setattr(conv, "bias", bias),
                    lambda: conv.bias.neg_(),
                    lambda: setattr(conv, "bias", None),
                ):
                    before, again = model(x), model(x)
                    self.assertEqual(len(changed._convlab_remembered[0]), 1)
                    self.assertNotEqual(before.data_ptr(), again.data_ptr())
                    self.assertTrue(torch.equal(before, again))
                    change()
                    expected = nn.functional.conv2d(x, conv.weight, conv.bias)
                    torch.testing.assert_close(model(x), expected)
                # Inputs of other kinds go the long way first.
                self.force(model, x[:1])
                self.assertEqual(len(changed._convlab_remembered[0]), 2)
                for weight in (nn.Parameter(conv.weight + 1), conv.weight):
                    conv.weight = weight
                    changed._layer(x.is_cuda)
                self.assertEqual(changed._convlab_remembered, ({}, ()))
                for other in (x.to(memory_format=torch.channels_last), x.double()):
                    layer = model if other.dtype == x.dtype else model.double()
                    expected = nn.functional.conv2d(other, conv.weight)
                    torch.testing.assert_close(layer(other), expected)
            self.assertEqual(copy.deepcopy(changed)._convlab_remembered, ({}, ()))

    def test_layers_calls_again_are_the_same(self):
        for device in self.devices:
            for kind in (torch.float32, torch.float16):
                x = torch.rand(3, 2, 15, 16, device=device).to(kind)
                w = torch.rand(6, 2, 3, 3, device=device).to(kind)
                layer = convlab.Conv2d(w, padding=1, pool=2)
                y = layer(x)
                self.assertEqual(len(layer._entries), 1)
                self.assertTrue(torch.equal(layer(x), y))
                self.assertTrue(layer(x).is_contiguous())
                w.mul_(2)
                layer.refresh()
                torch.testing.assert_close(layer(x), 2 * y)

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
            self.check_compiled(self.model(device), (3, 1, 28, 28), device)
            self.check_compiled(self.normalized(device), (4, 3, 20, 20), device)

    def check_compiled(self, model, shape, device):
        x = torch.rand(shape, device=device)
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
