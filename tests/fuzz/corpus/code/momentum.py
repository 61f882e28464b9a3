import torch
from torch import nn


def pair(value):
    """(value, value) of one number."""
    value = [value] if isinstance(value, int) else list(value)
    return tuple(value * 2 if len(value) == 1 else value)


class PaddedConv2d(nn.Module):
    """A convolution with MindSpore's padding: "same" also with a stride, or top, bottom, left and right apart."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="pad", padding=0, dilation=1, group=1, has_bias=False):
        super().__init__()
        self.kernel_size, self.stride, self.dilation, self.group = pair(kernel_size), pair(stride), pair(dilation), group
        self.pad_mode, self.sides = pad_mode, pair(padding)
        self.weight = nn.Parameter(torch.randn(out_channels, in_channels // group, *self.kernel_size) * 0.02)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if has_bias else None

    def forward(self, x):
        sides = self.sides if len(self.sides) == 4 else (self.sides[0], self.sides[0], self.sides[1], self.sides[1])
        if self.pad_mode == "same":
            sides = []
            for size, window, step, apart in zip(x.shape[2:], self.kernel_size, self.stride, self.dilation):
                missing = max(0, ((size + step - 1) // step - 1) * step + apart * (window - 1) + 1 - size)
                sides += [missing // 2, missing - missing // 2]
        top, bottom, left, right = sides
        padded = nn.functional.pad(x, (left, right, top, bottom))
        return nn.functional.conv2d(padded, self.weight, self.bias, self.stride, 0, self.dilation, self.group)


# celloom: {"name":"image_classifier"}
class Image_classifier(nn.Module):
    def __init__(self, channels=8, classes=10):
        self.conv1 = nn.Conv2d(3, channels, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(channels, eps=1e-5)
        self.act1 = nn.ReLU()
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = PaddedConv2d(in_channels=channels, out_channels=2 * channels, kernel_size=[3, 5], stride=[2], pad_mode="same", group=2)
        self.norm2 = nn.BatchNorm2d(2 * channels, eps=0.001, momentum=1 - 0.8)
        self.act2 = nn.SiLU()
        self.conv3 = PaddedConv2d(in_channels=2 * channels, out_channels=channels, kernel_size=[2], padding=[1, 0, 2, 1], dilation=[2])
        self.pool2 = nn.AvgPool2d((2, 3), stride=1, padding=1, count_include_pad=False)
        self.pool3 = nn.MaxPool2d(3, stride=2, padding=1)
        self.head = nn.Linear(6 * channels, classes)

    def forward(self, image):
        # image: [B, 3, 16, 16]
        # -> logits: [B, classes]
        conv1 = self.conv1(image)
        norm1 = self.norm1(conv1)
        act1 = self.act1(norm1)
        pool1 = self.pool1(act1)
        conv2 = self.conv2(pool1)
        norm2 = self.norm2(conv2)
        act2 = self.act2(norm2)
        conv3 = self.conv3(act2)
        pool2 = self.pool2(conv3)
        pool3 = self.pool3(pool2)
        flat = torch.flatten(pool3, 1, -1)
        head = self.head(flat)
        return head
