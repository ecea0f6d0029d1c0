#!/usr/bin/env python3
"""One rank of the peer of pipeline.py: torch.distributed.pipelining on CPU and Gloo, two stages.

  python -m torch.distributed.run --nproc-per-node 2 scripts/peers/pipelining.py --schedule 1f1b --microbatches 8

A step is what mgt does in one: take random rows, go forward and backward in microbatches, all-reduce the loss and the
gradient's square, update by plain SGD. `outside_of_stages` is another idle share than that of pipeline.py: whatever is
not forward or backward of a stage, so Python's work between them too. Gradients are first compared with those of the
whole model.
"""
import argparse
import ctypes
import os
import time

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")      # as mgt

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, schedules

import common

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
WIDTH, LAYERS = 1024, 8


def keep_freed_memory():
    """What mgt asks of malloc, too: freed activations stay with the process."""
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_threshold, 1 << 30)
    libc.mallopt(trim_threshold, 2**31 - 1)
    libc.mallopt(top_pad, 64 << 20)


def mlp():
    torch.manual_seed(0)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class Clock:
    """Seconds of a rank's steps: all, those within its stage, and those of messages: sending, receiving and waiting."""

    def __init__(self, stage):
        self.reset()
        for name in ("forward_one_chunk", "backward_one_chunk"):
            setattr(stage, name, self.timed("in_stage", getattr(stage, name)))
        for name in ("_batch_p2p", "_wait_batch_p2p"):
            setattr(schedules, name, self.timed("messages", getattr(schedules, name)))
        self.all_reduce = self.timed("messages", dist.all_reduce)

    def reset(self):
        self.seconds = {"all": 0.0, "in_stage": 0.0, "messages": 0.0}

    def timed(self, what, call):
        def wrapper(*args, **kwargs):
            start = time.perf_counter()
            result = call(*args, **kwargs)
            self.seconds[what] += time.perf_counter() - start
            return result
        return wrapper


class Step:
    def __init__(self, args):
        rank, world = common.rank_world()
        self.first, self.whole = rank == 0, mlp()
        self.part = self.whole[:LAYERS] if self.first else self.whole[LAYERS:]
        stage = PipelineStage(self.part, rank, world, torch.device("cpu"))
        self.schedule = SCHEDULES[args.schedule](stage, args.microbatches, loss_fn=nn.MSELoss())
        self.optimizer = torch.optim.SGD(self.part.parameters(), lr=0.01)
        self.clock = Clock(stage)
        self.compute = self.clock.timed("all", self.compute)

    def compute(self, x, y):
        losses = []
        self.schedule.step(x) if self.first else self.schedule.step(target=y, losses=losses)
        norm = nn.utils.get_total_norm([p.grad for p in self.part.parameters()])
        sums = torch.tensor([sum(loss.item() for loss in losses), norm.item() ** 2], dtype=torch.float64)
        self.clock.all_reduce(sums)

    def __call__(self, x, y):
        self.optimizer.zero_grad()
        self.compute(x, y)
        self.optimizer.step()

    def gradient_error(self, x, y, microbatches):
        """The largest relative difference of a gradient from that of the whole model."""
        nn.functional.mse_loss(self.whole(x), y).backward()
        expected = [p.grad.clone() for p in self.part.parameters()]
        self.optimizer.zero_grad()
        self.compute(x, y)
        found = [p.grad for p in self.part.parameters()]
        worst = max(float((f - e).norm() / e.norm()) for f, e in zip(found, expected))
        assert worst < 1e-3, f"gradients differ by {worst}"
        return max(gathered(worst))


def gathered(number):
    """The number of every rank."""
    everyone = [torch.zeros(1, dtype=torch.float64) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, torch.tensor([number], dtype=torch.float64))
    return [one.item() for one in everyone]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule", choices=SCHEDULES, default="gpipe")
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=10, help="steps of an epoch")
    parser.add_argument("--epochs", type=int, default=6, help="the first warms up")
    parser.add_argument("--out", help="JSON file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    x, y = torch.rand(2, args.batch * args.steps, WIDTH)
    step = Step(args)
    error = step.gradient_error(x[:args.batch], y[:args.batch], args.microbatches)
    step.clock.reset()
    seconds = []
    for _ in range(args.epochs):
        start = time.perf_counter()
        for rows in torch.randperm(len(x)).split(args.batch):
            step(x[rows], y[rows])
        seconds.append(time.perf_counter() - start)
    clock = {what: gathered(found) for what, found in step.clock.seconds.items()}
    if common.rank_world()[0] == 0:
        shares = {what: [part / whole for part, whole in zip(clock[what], clock["all"])] for what in clock}
        common.report(args, {"ms": [1e3 * epoch / args.steps for epoch in seconds], "idle_by_rank": shares["messages"],
                             "outside_of_stages": 1 - sum(shares["in_stage"]) / len(shares["in_stage"]),
                             "gradient_error": error})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
