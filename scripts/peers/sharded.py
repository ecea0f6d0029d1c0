#!/usr/bin/env python3
"""One rank of the peers of zero.py, all modes in turn: torch's DDP, and what shares out states on CPU and Gloo.

  python -m torch.distributed.run --nproc-per-node 2 scripts/peers/sharded.py --model resnet18 --batch 16

ddp           DistributedDataParallel; the first, which the others are divided by
torch ZeRO-1  DDP with ZeroRedundancyOptimizer
FSDP2         fully_shard by block, freed after forward
DeepSpeed 1, 2, 3   its ZeRO stages
"""
import argparse
import os
import time

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import common

RATE = 1e-3
TORCH_MODES = ("ddp", "torch ZeRO-1", "FSDP2")
MODES = TORCH_MODES + ("DeepSpeed 1", "DeepSpeed 2", "DeepSpeed 3")


def fsdp(net):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in net:
        if isinstance(block, (common.Residual, nn.Linear)):
            fully_shard(block, mesh=mesh, reshard_after_forward=True)
    return fully_shard(net, mesh=mesh, reshard_after_forward=True)


class TorchStep:
    """One training step of a torch mode."""

    def __init__(self, mode, net):
        self.net = fsdp(net) if mode == "FSDP2" else DistributedDataParallel(net)
        parameters = self.net.parameters()
        self.optimizer = (ZeroRedundancyOptimizer(parameters, torch.optim.Adam, lr=RATE) if mode == "torch ZeRO-1"
                          else torch.optim.Adam(parameters, lr=RATE))
        self.loss = nn.CrossEntropyLoss()

    def __call__(self, x, y):
        self.optimizer.zero_grad()
        value = self.loss(self.net(x), y)
        value.backward()
        self.optimizer.step()
        return value.item()


class DeepSpeedStep:
    def __init__(self, stage, net, batch):
        config = {"train_micro_batch_size_per_gpu": batch, "zero_optimization": {"stage": stage},
                  "gradient_clipping": 0.0,     # its default is 1.0, and training then differs from DDP
                  "zero_allow_untested_optimizer": True, "steps_per_print": 10**9}
        adam = torch.optim.Adam(net.parameters(), lr=RATE)
        self.engine, *_ = deepspeed.initialize(model=net, optimizer=adam, config=config)
        self.loss = nn.CrossEntropyLoss()

    def __call__(self, x, y):
        value = self.loss(self.engine(x), y)
        self.engine.backward(value)
        self.engine.step()
        return value.item()


def prepare(mode, args):
    net = common.build(args.model)
    if mode in TORCH_MODES:
        return TorchStep(mode, net)
    return DeepSpeedStep(int(mode.split()[-1]), net, args.batch)


def seconds_of(step, x, y, count):
    """Of one step, as its slowest rank has it."""
    dist.barrier()
    start = time.perf_counter()
    for _ in range(count):
        step(x, y)
    slowest = torch.tensor((time.perf_counter() - start) / count, dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=common.PARAMETERS, default="resnet18")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--batch", type=int, default=16, help="images of a rank")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--block", type=float, default=0.3, help="least seconds of the steps in a row")
    parser.add_argument("--out", help="JSON file to write")
    args = parser.parse_args()
    rank, world = common.rank_world()
    torch.set_num_threads(1)
    deepspeed.init_distributed(dist_backend="gloo")
    torch.manual_seed(rank)
    x, y = torch.rand(args.batch, 1, 28, 28), torch.randint(10, (args.batch,))
    modes = args.modes.split(",")
    steps = {mode: prepare(mode, args) for mode in modes}
    losses = {mode: [step(x, y) for _ in range(2)] for mode, step in steps.items()}
    for mode in modes:
        agree = all(abs(a - b) < 1e-3 for a, b in zip(losses[mode], losses[modes[0]]))
        assert agree, f"{mode} trains something else: {losses[mode]}, {modes[0]} {losses[modes[0]]}"
    count = max(1, round(args.block / seconds_of(steps[modes[0]], x, y, 2)))
    seconds = {mode: [] for mode in modes}
    for turn in range(args.rounds):
        for mode in modes if turn % 2 == 0 else modes[::-1]:
            seconds[mode].append(seconds_of(steps[mode], x, y, count))
    if rank == 0:
        first = seconds[modes[0]]
        speed = [{"mode": mode, "ms": common.quartiles([1e3 * s for s in found]),
                  "images_per_s": args.batch * world / common.quartiles(found)["median"],
                  "time_over_first": common.quartiles([s / f for f, s in zip(first, found)]),
                  "quickest_over_first": min(found) / min(first)}
                 for mode, found in seconds.items()]
        common.report(args, {"world": world, "deepspeed": deepspeed.__version__, "speed": speed})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
