#!/usr/bin/env python3
"""Makes the files beside it, by PyTorch: python3 make.py. README.md says what they are."""

from pathlib import Path

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, 5)
        self.conv2 = nn.Conv2d(3, 4, 5, bias=False)
        self.pool = nn.MaxPool2d(3, ceil_mode=True)
        self.drop = nn.Dropout(0.5)
        self.fc1 = nn.Linear(36, 12)
        self.fc2 = nn.Linear(12, 10, bias=False)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = self.pool(torch.tanh(self.conv2(x)))
        x = self.drop(x.view(x.size(0), -1))
        return torch.log_softmax(self.fc2(torch.relu(self.fc1(x))), 1)


torch.manual_seed(408)
net = Net().eval()
with torch.no_grad():
    net.conv1.weight /= 255  # it gets pixels from 0 to 255
    net.conv1.bias.copy_(torch.tensor([0.25, -0.5, 0.75]))
    net.fc1.weight[1, 2] = 1 / 64
folder = Path(__file__).parent
image = torch.zeros(1, 1, 28, 28)
torch.onnx.export(net, image, folder / "torch_folded.onnx")
batch = {"dynamic_axes": {"image": {0: "batch"}}, "input_names": ["image"]}
torch.onnx.export(net, image, folder / "torch_unfolded.onnx", do_constant_folding=False, **batch)
