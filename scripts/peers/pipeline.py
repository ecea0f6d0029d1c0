#!/usr/bin/env python3
"""The idle share of a pipeline of two stages, and its time per step: mgt beside torch.distributed.pipelining.

  scripts/peers/pipeline.py --python VENV/bin/python   with torch 2.11 there
  scripts/peers/pipeline.py --microbatches 2,4,8,16    other numbers of microbatches
  scripts/peers/pipeline.py --out pipeline.json        keep the figures

Both train the same MLP, eight linear layers of 1024 with ReLU between them, cut in half, on random rows with MSE and
plain SGD: two processes, Gloo over the loopback, one thread each, freed memory kept, neither pinned to a core. A round
runs all cases, each by mgt and by torch one right after the other, in turning order; ratios are those of a round.

Idle: the share of a step that a rank spends on messages, not on its layers: sending, receiving, waiting for the other
rank, and the all-reduce of the loss that ends a step; the mean of both ranks. The update and the choice of rows are not
in the step here, but in its ms. mgt counts so itself, over all of its steps; in torch the calls are timed, in all steps
but one before them that sets up (pipelining.py). `outside of stages` is torch's share of all but forward and backward,
which takes what Python does between them for idle as well. ms is the median epoch of a run, the first left out.

Ideal: the share that stages with these times would have with free communication, 1 - m(a+b)/(2(m max(a,b) + min(a,b))),
where m are the microbatches, and a and b a stage's time but for messages. By formula, with a = b: (p-1)/(m+p-1).

`mgt verify` compares every case with one device in fp64, and torch's gradients are compared with the whole model's.

The peer needs an interpreter with torch; without it, its rows are left out:
  python3 -m venv VENV && VENV/bin/pip install torch==2.11.0 numpy
"""
import statistics
import sys

import runs
from runs import quartiles, spread

CONFIG = "pipeline_2gpu.yaml"
STAGES = 2
WIDTH, LAYERS = 1024, 8


def settings_of(args, schedule, microbatches):
    hidden = ", ".join([str(WIDTH)] * (LAYERS - 1))
    return {"model": f"{{name: mlp, loss: mse, input: [{WIDTH}], hidden: [{hidden}], outputs: {WIDTH}}}",
            "data": f"{{name: random_rows, rows: {args.batch * args.steps}, features: {WIDTH}, outputs: {WIDTH}}}",
            "strategy": f"{{name: pipeline, stages: {STAGES}, microbatches: {microbatches}, schedule: {schedule}, "
                        f"split: [{LAYERS // 2}, {LAYERS // 2}]}}",
            "optimizer": "{name: sgd, lr: 0.01}", "devices": STAGES, "threads": 1, "launch": "processes",
            "comm.backend": "gloo", "batch_size": args.batch}


# ---------------------------------------------------------------- one run
def idle_by_rank(note):
    """Shares from "22.4 % (by rank: 25.3, 19.5)", where ranks that agree are left out."""
    _, found, ranks = note.partition("by rank: ")
    return [float(text) / 100 for text in ranks.rstrip(")").split(",")] if found else [float(note.split()[0]) / 100] * 2


def mgt(args, schedule, microbatches):
    settings = settings_of(args, schedule, microbatches) | {"epochs": 1 + args.epochs}
    seconds, summary = runs.train(args, CONFIG, settings)
    return {"ms": [1e3 * epoch / args.steps for epoch in seconds],
            "idle_by_rank": idle_by_rank(summary["notes"]["idle"])}


def torch(args, schedule, microbatches):
    return runs.peer(args, STAGES, "pipelining.py", "--schedule", schedule, "--microbatches", str(microbatches),
                     "--batch", str(args.batch), "--steps", str(args.steps), "--epochs", str(1 + args.epochs))


def ideal(microbatches, idle):
    a, b = (1 - share for share in idle)
    return 1 - microbatches * (a + b) / (2 * (microbatches * max(a, b) + min(a, b)))


def figures_of(run, microbatches):
    return {"idle": statistics.mean(run["idle_by_rank"]), "ideal": ideal(microbatches, run["idle_by_rank"]),
            "ms": statistics.median(run["ms"][1:])} | {key: run[key] for key in ("outside_of_stages", "gradient_error")
                                                       if key in run}


# ---------------------------------------------------------------- all of them in turn
def measured(args):
    programs = {"mgt": mgt}
    if runs.peers_there(args, "import torch.distributed.pipelining"):
        programs["torch"] = torch
    cases = [(schedule, int(m)) for m in args.microbatches.split(",") for schedule in args.schedules.split(",")]
    found = {case: {name: [] for name in programs} for case in cases}
    for turn in range(args.rounds):
        order = list(programs) if turn % 2 == 0 else list(programs)[::-1]
        first = turn % len(cases)
        for case in cases[first:] + cases[:first]:
            for name in order:
                figures = figures_of(programs[name](args, *case), case[1])
                found[case][name].append(figures)
                print(f"round {turn + 1}, {case[0]}, m = {case[1]}: {name} {100 * figures['idle']:.1f} % idle, "
                      f"{figures['ms']:.1f} ms", file=sys.stderr, flush=True)
    return {"cases": [summed_up(args, *case, found[case]) for case in cases]}


def summed_up(args, schedule, microbatches, found):
    case = {"schedule": schedule, "microbatches": microbatches,
            "programs": {name: {key: quartiles([run[key] for run in rounds]) for key in rounds[0]}
                         for name, rounds in found.items()}}
    if "torch" in found:
        case["torch_over_mgt"] = quartiles([t["ms"] / m["ms"] for t, m in zip(found["torch"], found["mgt"])])
        case["gradient_error"] = max(run["gradient_error"] for run in found["torch"])
    if not args.no_verify:
        case["verified"] = runs.verify(args, CONFIG, settings_of(args, schedule, microbatches), STAGES)
    return case


def rows_of(case):
    m = case["microbatches"]
    for name, figures in case["programs"].items():
        outside = f"{figures['outside_of_stages']['median']:.2f}" if "outside_of_stages" in figures else ""
        ratio = spread(case["torch_over_mgt"]) if name == "torch" else ""
        yield (f"| mlp | {STAGES} | {m} | {case['schedule']} | {name} | {spread(figures['idle'])} | {outside} | "
               f"{figures['ideal']['median']:.2f} | {(STAGES - 1) / (m + STAGES - 1):.2f} | "
               f"{figures['ms']['median']:.1f} | {ratio} |")


def table(record):
    lines = ["| model | stages | m | schedule | whose | idle | outside of stages | ideal | by formula | ms per step | "
             "torch / mgt |", "|" + "---|" * 11]
    for case in record["cases"]:
        lines += rows_of(case)
    equal = sum(case.get("verified", 0) for case in record["cases"])
    errors = [case["gradient_error"] for case in record["cases"] if "gradient_error" in case]
    lines += ["", f"`mgt verify` found {equal} of {len(record['cases'])} cases equal to one device." if equal else ""]
    if errors:
        lines[-1] += f" torch's gradients differ from the whole model's by at most {max(errors):.1e} of their size."
    return "\n".join(lines)


def main():
    parser = runs.parser(__doc__)
    parser.add_argument("--microbatches", default="4,8")
    parser.add_argument("--schedules", default="gpipe,1f1b")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=10, help="steps of an epoch")
    parser.add_argument("--epochs", type=int, default=5, help="epochs of a run that count")
    parser.add_argument("--rounds", type=int, default=8)
    runs.report(parser.parse_args(), measured, table)


if __name__ == "__main__":
    main()
