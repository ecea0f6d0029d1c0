"""Makes the files of this folder with torchvision's VisionTransformer, in fp64 on one CPU thread. In a virtual environment
with torch 2.11.0, torchvision 0.26.0 and safetensors: python make.py (in this folder)."""
import gzip
import json
import math
import struct
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torchvision.models.vision_transformer import VisionTransformer

DATA = Path("../1_trajectories/data")
MODEL = {"name": "vit", "layers": 2, "width": 12, "heads": 3, "patch": 7}
BATCH, STEPS, LR, SEED = 64, 6, 0.1, 20

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
torch.backends.mkldnn.enabled = False


def idx(name):
    raw = (gzip.decompress if name.endswith(".gz") else bytes)((DATA / name).read_bytes())
    sizes = struct.unpack(f">{raw[3]}I", raw[4 : 4 + 4 * raw[3]])
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(sizes).copy())


def rows(images, labels):
    return idx(images).double().unsqueeze(1) / 255, idx(labels).long()


def random_net():
    """Large and uneven weights, drawn in fp32 so that the file casts to fp64 without loss; keys without a bias."""
    torch.manual_seed(SEED)
    width = MODEL["width"]
    net = VisionTransformer(28, MODEL["patch"], MODEL["layers"], MODEL["heads"], width, 4 * width, num_classes=10)
    net.conv_proj = nn.Conv2d(1, width, MODEL["patch"], MODEL["patch"])
    with torch.no_grad():
        for name, p in net.named_parameters():
            is_norm = ".ln" in name and name.endswith("weight")
            p.normal_(1 if is_norm else 0, 1 / math.sqrt(p[0].numel()) if p.dim() == 2 else 0.2)
            if name.endswith("in_proj_bias"):
                p[width : 2 * width] = 0
    return net.double()


def named(net):
    """The parameters as mgt names them: torchvision's in_proj is its queries, keys and values, one below the other."""
    result = {}
    for name, p in net.state_dict().items():
        if "in_proj" not in name:
            result[name] = p
            continue
        kind = name.rsplit("_", 1)[1]
        for letter, part in zip("qkv", p.chunk(3)):
            if letter != "k" or kind == "weight":
                result[name.replace(f"in_proj_{kind}", f"{letter}_proj.{kind}")] = part.clone()
            else:
                assert part.abs().max() < 1e-15  # its gradient is zero but for rounding
    return result


def norm(tensors):
    return math.sqrt(math.fsum((t.double() ** 2).sum().item() for t in tensors))


def train(net, x, y):
    optimizer = torch.optim.SGD(net.parameters(), lr=LR, foreach=False)
    records = []
    while len(records) < STEPS:
        for begin in range(0, len(y), BATCH):
            part = slice(begin, begin + BATCH)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x[part]), y[part])
            loss.backward()
            records.append({"step": len(records), "n": len(y[part]), "loss": loss.item(),
                            "grad_norm": norm(p.grad for p in net.parameters())})
            optimizer.step()
    return records


def main():
    x, y = rows("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
    test_x, test_y = rows("test-images-idx3-ubyte.gz", "test-labels-idx1-ubyte.gz")
    net = random_net()
    save_file({name: p.float().contiguous() for name, p in named(net).items()}, "vit_tiny_init.safetensors")
    records = train(net, x, y)
    final = {name: {"sum": math.fsum(p.flatten().tolist()), "l2": norm([p])} for name, p in named(net).items()}
    with torch.no_grad():
        correct = int((net.eval()(test_x).argmax(1) == test_y).sum())
    result = {"model": MODEL, "init": "vit_tiny_init.safetensors", "batch": BATCH, "optimizer": {"name": "sgd", "lr": LR},
              "records": records, "test": {"correct": correct, "total": len(test_y)}, "final": final}
    Path("vit_tiny.json").write_text(json.dumps(result, indent=1) + "\n")


main()
