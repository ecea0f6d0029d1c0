#!/usr/bin/env python3
"""ddp and ZeRO 1 to 3: equal to one device, bytes of a rank, bytes sent, images/s; measured and by formula, with peers.

  scripts/peers/zero.py                              resnet18 on 2 and 4 ranks
  scripts/peers/zero.py --models lenet,resnet18,vit  more models
  scripts/peers/zero.py --python VENV/bin/python     DeepSpeed and FSDP2 in the same run
  scripts/peers/zero.py --out zero.json              keep the figures

Every strategy trains the same synthetic rows with Adam, fp32, one thread a rank, over Gloo. A round runs all of them,
one after another, in turning order, so that a ratio's two sides lie close in time; the ratio is the median over the
rounds, with its quartiles. Beside it stands the ratio of the quickest steps of all rounds, which other work on the
machine disturbs least. The first epoch of a run warms up and does not count. Bytes must be those of the formulas
(Rajbhandari et al., SC 2020), else the command fails: P parameters of b bytes, k ranks, 2bP of Adam's state.

            parameters   gradients   optimizer   sent by a rank in a step
  ddp       bP           bP          2bP         2(k-1)/k bP
  ZeRO-1    bP           bP          2bP/k       2(k-1)/k bP
  ZeRO-2    bP           bP/k        2bP/k       2(k-1)/k bP
  ZeRO-3    bP/k         bP/k        2bP/k       3(k-1)/k bP; and the largest block while it is gathered

Units are padded to whole cache lines and to equal parts, and two doubles more are all-reduced in each step, the loss
and the gradient's square. Both are in the check, which allows no byte of difference, but not in the printed formula. What gathers early or travels holds memory for a moment;
that is told beside. `equal` is `mgt verify` in fp64; ResNet-18 narrow there, its BatchNorm synchronised.

The peers (sharded.py) need an interpreter with torch and deepspeed; without it, their part is left out:
  python3 -m venv VENV && VENV/bin/pip install torch==2.11.0 numpy setuptools wheel ninja
  DS_BUILD_OPS=0 DS_ACCELERATOR=cpu VENV/bin/pip install --no-build-isolation deepspeed==0.19.8
"""
import statistics
import sys

import runs
from runs import quartiles, spread

CONFIG = "zero_2gpu.yaml"
ITEM = 4                # bytes of an fp32
SUMS = 2 * 8            # bytes of the doubles that each step all-reduces
STAGES = {"ddp": 0, "ZeRO-1": 1, "ZeRO-2": 2, "ZeRO-3": 3}
PARAMETERS = {"lenet": 129_068, "resnet18": 11_175_818, "vit": 204_810}
LARGEST_BLOCK = {"lenet": 800 * 128 + 128, "resnet18": 2 * (512 * 512 * 9 + 512 + 2 * 512),
                 "vit": 12 * 64 * 64 + 8 * 64 + 4 * 64}
NARROW = {"resnet18": "{name: resnet18, bn: sync, channels: [8, 16], blocks: [1, 1]}"}
PEERS = ("resnet18", "lenet")


def strategy_of(name):
    return f"{{name: zero, stage: {STAGES[name]}}}" if STAGES[name] else "ddp"


# ---------------------------------------------------------------- one strategy
def verified(args, model, name, ranks):
    settings = {"data": "synthetic", "model": NARROW.get(model, model), "strategy": strategy_of(name)}
    return runs.verify(args, CONFIG, settings, ranks)


def trained(args, model, name, ranks, epochs, **more):
    """Seconds of a step in each epoch, and the summary of the run."""
    batch = args.per_rank * ranks
    settings = {"model": model, "strategy": strategy_of(name), "devices": ranks, "threads": 1, "launch": "processes",
                "comm.backend": "gloo", "batch_size": batch, "epochs": epochs,
                "data": f"{{name: synthetic, train: {batch * args.steps}, test: {ranks}}}"} | more
    seconds, summary = runs.train(args, CONFIG, settings)
    return [epoch / args.steps for epoch in seconds], summary


def bytes_of(summary, ranks):
    notes = {key: int(text.split()[0]) for key, text in summary["notes"].items() if " bytes" in text}
    found = {key: notes[f"{key} of a rank"] for key in ("parameters", "gradients", "optimizer state")}
    sent = summary["bytes_per_step"]                       # by all ranks
    assert sent % ranks == 0, "ranks send different numbers of bytes"
    return found | {"sent": sent // ranks}, notes


def formula(stage, ranks, whole):
    part = whole // ranks
    return {"parameters": part if stage >= 3 else whole, "gradients": part if stage >= 2 else whole,
            "optimizer state": 2 * (part if stage >= 1 else whole),
            "sent": (3 if stage >= 3 else 2) * (ranks - 1) * part + 2 * (ranks - 1) * SUMS // ranks}


def check_bytes(model, name, ranks, summary):
    """The bytes of a rank, which are those of the formula to the byte."""
    found, notes = bytes_of(summary, ranks)
    expected = formula(STAGES[name], ranks, ITEM * PARAMETERS[model] + notes["padding"])
    if found != expected:
        sys.exit(f"zero.py: {model}, {name} on {ranks} ranks: {found}, but by formula {expected}")
    return {"bytes": found, "padding": notes["padding"], "gathered at most": notes.get("gathered at most", 0),
            "gradients on their way at most": notes.get("gradients on their way at most", 0)}


def check_largest_block(args, model, ranks):
    """Without a block gathered early, stage 3 holds one block at a time."""
    early = "{name: zero, stage: 3, overlap_comm: false}"
    _, summary = trained(args, model, "ZeRO-3", ranks, 1, strategy=early, max_steps=1)
    gathered = int(summary["notes"]["gathered at most"].split()[0])
    least = ITEM * LARGEST_BLOCK[model]
    if not least <= gathered < least + int(summary["notes"]["padding"].split()[0]) + 64 * ranks:
        sys.exit(f"zero.py: {model} on {ranks} ranks gathers {gathered} bytes, but the largest block has {least}")
    return {"one block": gathered}


# ---------------------------------------------------------------- all of them in turn
def measure(args, model, ranks):
    names = list(STAGES)
    seconds, quickest = {name: [] for name in names}, {name: [] for name in names}
    facts = {}
    for turn in range(args.rounds):
        order = names[turn % len(names):] + names[:turn % len(names)]
        for name in order if turn % 2 == 0 else order[::-1]:
            steps, summary = trained(args, model, name, ranks, 1 + args.epochs)
            seconds[name].append(statistics.median(steps[1:]))
            quickest[name].append(min(steps[1:]))
            facts[name] = check_bytes(model, name, ranks, summary)
        print(f"{model}, {ranks} ranks, round {turn + 1}: " +
              ", ".join(f"{name} {1e3 * seconds[name][-1]:.1f} ms" for name in names), file=sys.stderr, flush=True)
    facts["ZeRO-3"] |= check_largest_block(args, model, ranks)
    for name in names:
        facts[name] |= {"verified": 0 if args.no_verify else verified(args, model, name, ranks),
                        "ms": quartiles([1e3 * s for s in seconds[name]]),
                        "images_per_s": round(args.per_rank * ranks / statistics.median(seconds[name]), 1),
                        "time_over_ddp": quartiles([s / d for d, s in zip(seconds["ddp"], seconds[name])]),
                        "quickest_over_ddp": min(quickest[name]) / min(quickest["ddp"])}
    return facts


def peers_of(args, model, ranks):
    """Ratios of the peers to torch's DDP, from blocks of steps in turn within one process a rank."""
    return runs.peer(args, ranks, "sharded.py", "--model", model, "--batch", str(args.per_rank),
                     "--rounds", str(args.peer_rounds))


# ---------------------------------------------------------------- tables
def count(number):
    return f"{number:,.0f}"


def rows_of(model, ranks, facts):
    plain = ITEM * PARAMETERS[model]
    for name, fact in facts.items():
        kept = sum(value for key, value in fact["bytes"].items() if key != "sent")
        part = 1 if STAGES[name] == 0 else ranks
        by_formula = sum((plain / (part if STAGES[name] >= 3 else 1), plain / (part if STAGES[name] >= 2 else 1),
                          2 * plain / part))
        sent = (3 if STAGES[name] >= 3 else 2) * (ranks - 1) * plain / ranks
        equal = "yes" if fact["verified"] else "not asked"
        yield (f"| {model}, {ranks} | {name} | {equal} | {count(kept)} | {count(by_formula)} | "
               f"{count(fact['bytes']['sent'])} | {count(sent)} | {fact['images_per_s']:.1f} | "
               f"{spread(fact['time_over_ddp'])} | {fact['quickest_over_ddp']:.2f} |")


def moments_of(model, ranks, facts):
    fact = facts["ZeRO-3"]
    bucket = facts["ZeRO-2"]["gradients on their way at most"]
    return (f"{model} on {ranks} ranks: ZeRO-3 gathers {count(fact['one block'])} bytes at a time (largest block: "
            f"{count(ITEM * LARGEST_BLOCK[model])}), with the next block on its way {count(fact['gathered at most'])}; "
            f"gradients on their way hold at most {count(bucket)} (ZeRO-2) and "
            f"{count(fact['gradients on their way at most'])} (ZeRO-3).")


def table(record):
    lines = ["| model, ranks | strategy | equal to one device | bytes kept by a rank | by formula | "
             "sent by a rank in a step | by formula | images/s | time over ddp | quickest |", "|" + "---|" * 10]
    for case in record["mgt"]:
        lines += rows_of(case["model"], case["ranks"], case["strategies"])
    lines.append("")
    lines += [moments_of(case["model"], case["ranks"], case["strategies"]) for case in record["mgt"]]
    if record["peers"]:
        lines += ["", "| model, ranks | peer | images/s | time over torch's DDP | quickest |", "|" + "---|" * 5]
    for case in record["peers"]:
        lines += [f"| {case['model']}, {case['world']} | {row['mode']} | {row['images_per_s']:.1f} | "
                  f"{spread(row['time_over_first'])} | {row['quickest_over_first']:.2f} |" for row in case["speed"]]
    return "\n".join(lines)


def measured(args):
    with_peers = not args.no_peers and runs.peers_there(args, "import torch.distributed.fsdp, deepspeed")
    record = {"mgt": [], "peers": []}
    for model in args.models.split(","):
        for ranks in map(int, args.ranks.split(",")):
            record["mgt"].append({"model": model, "ranks": ranks, "strategies": measure(args, model, ranks)})
            if with_peers and model in PEERS:
                record["peers"].append({"model": model} | peers_of(args, model, ranks))
    return record


def main():
    parser = runs.parser(__doc__)
    parser.add_argument("--models", default="resnet18", help=f"of {', '.join(PARAMETERS)}")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--per-rank", type=int, default=16, help="images of a rank in a step")
    parser.add_argument("--steps", type=int, default=2, help="steps of an epoch")
    parser.add_argument("--epochs", type=int, default=8, help="epochs of a run that count")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--peer-rounds", type=int, default=12)
    parser.add_argument("--no-peers", action="store_true")
    runs.report(parser.parse_args(), measured, table)


if __name__ == "__main__":
    main()
