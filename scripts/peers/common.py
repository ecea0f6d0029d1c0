"""Shared by the peer scripts: the data, the book's LeNet and ResNet-18, statistics and the report."""
import gzip
import json
import os
import platform
import statistics
import struct
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

PARAMETERS = {"lenet": 129_068, "resnet18": 11_175_818}


# ---------------------------------------------------------------- data
def read_idx(path):
    with gzip.open(path, "rb") as f:
        raw = f.read()
    dims = raw[3]
    shape = struct.unpack(f">{dims}I", raw[4:4 + 4 * dims])
    return torch.frombuffer(bytearray(raw[4 + 4 * dims:]), dtype=torch.uint8).view(shape)


def training_set(folder):
    """The 60,000 images as floats in memory, (n, 1, 28, 28) divided by 255 and nothing else, and their labels (n)."""
    images = read_idx(os.path.join(folder, "train-images-idx3-ubyte.gz"))
    labels = read_idx(os.path.join(folder, "train-labels-idx1-ubyte.gz"))
    return images.unsqueeze(1).float().div_(255), labels.long()


# ---------------------------------------------------------------- model
def build(name, seed=0):
    """The book's model with N(0, 0.01) weights and zero biases (BatchNorm keeps 1 and 0)."""
    torch.manual_seed(seed)
    net = {"lenet": lenet, "resnet18": resnet18}[name]()
    for m in net.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            nn.init.normal_(m.weight, std=0.01)
            nn.init.zeros_(m.bias)
    assert sum(p.numel() for p in net.parameters()) == PARAMETERS[name]
    return net


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10))


class Residual(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride=stride, padding=1)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.shortcut = nn.Conv2d(c_in, c_out, 1, stride=stride) if c_in != c_out else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def resnet18():
    layers = [nn.Conv2d(1, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()]
    for c_in, c_out in ((64, 64), (64, 128), (128, 256), (256, 512)):
        layers += [Residual(c_in, c_out, 1 if c_in == c_out else 2), Residual(c_out, c_out, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


# ---------------------------------------------------------------- processes
def rank_world():
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def peak_rss_mb():
    with open("/proc/self/status") as f:
        kb = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    return kb / 1024


# ---------------------------------------------------------------- statistics and report
def quartiles(values):
    values = sorted(values)
    if len(values) < 2:
        return {"q1": values[0], "median": values[0], "q3": values[0], "n": len(values)}
    q1, q2, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return {"q1": q1, "median": q2, "q3": q3, "n": len(values)}


def environment():
    with open("/proc/loadavg") as f:
        load = float(f.read().split()[0])
    return {"python": platform.python_version(), "torch": torch.__version__,
            "capability": torch.backends.cpu.get_cpu_capability(), "cores": os.cpu_count(), "load_1min": load,
            "date": time.strftime("%Y-%m-%d")}


def report(args, result):
    """Print the result as one JSON object and, with --out, keep it. Paths are left out on purpose."""
    options = {k: v for k, v in vars(args).items() if k not in ("data", "out", "mgt", "child")}
    record = {"script": os.path.basename(sys.argv[0]), "options": options, **environment(), **result}
    if args.out:
        with open(args.out, "w") as f:
            json.dump(record, f, indent=1)
            f.write("\n")
    print(json.dumps(record), flush=True)
