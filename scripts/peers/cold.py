#!/usr/bin/env python3
"""Cold start: from the command to the end of the first training step, and the memory it takes, mgt beside Python.

  scripts/peers/cold.py                    LeNet, batch 8, one thread; the whole training set is read first
  scripts/peers/cold.py --torchrun         torchrun with two and four ranks as well
  scripts/peers/cold.py --out cold.json    keep the result

Compared in turn within each repeat: an interpreter that does nothing, `import torch`, one rank by Python, and one rank
by mgt. The files are in the page cache: the first round is dropped. `step` ends when the (slowest) rank has finished
its step, `exit` when the whole command has returned; mgt evaluates the test set before it returns, Python does not.
For mgt, `step` is `first_step_s` of its summary.json, which counts from exec.

It needs the program (scripts/setup builds it) and an interpreter that can import the PyTorch that mgt links, with all
that this wheel depends on, CUDA's libraries too:
  python3 -m venv VENV && VENV/bin/pip install torch==2.11.0 && VENV/bin/python scripts/peers/cold.py
If the interpreter has no torch, the wheel in mgt's cache is tried. scripts/setup installs it without its dependencies,
so this works only where they are there: CUDA 13 and its companions (cuDNN, NCCL, cuFile, ...) on the system, and
  pip install filelock fsspec jinja2 networkx sympy typing_extensions
"""
import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mgt")


def child(folder, data):
    """One rank: build LeNet, read the data, take one step (through DDP if there are peers), leave a note."""
    imported = time.monotonic()
    import torch
    import torch.distributed as dist

    import common
    imported = time.monotonic() - imported
    rank, world = common.rank_world()
    torch.set_num_threads(1)
    net = common.build("lenet")
    if world > 1:
        dist.init_process_group("gloo")
        net = torch.nn.parallel.DistributedDataParallel(net)
    images, labels = common.training_set(data)
    x, y = images[rank * 8:rank * 8 + 8], labels[rank * 8:rank * 8 + 8]
    sgd = torch.optim.SGD(net.parameters(), lr=0.2)
    torch.nn.functional.cross_entropy(net(x), y).backward()
    sgd.step()
    done = time.monotonic()
    with open(os.path.join(folder, f"{rank}.note"), "w") as f:
        json.dump({"done": done, "import": imported, "rss_mb": common.peak_rss_mb()}, f)
    if world > 1:
        dist.destroy_process_group()


def launch(command, folder):
    """Run one command in the empty folder; the figures of it, from what it left there."""
    start = time.monotonic()
    with open(os.path.join(folder, "errors"), "w+b") as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            sys.exit(f"cold.py: exit {process.returncode} of {' '.join(command)}\n{errors.read().decode()[-2000:]}")
    row = {"exit": wall, "rss_mb_largest": used.ru_maxrss / 1024}
    notes = []
    for name in os.listdir(folder):
        if name.endswith(".note"):
            with open(os.path.join(folder, name)) as f:
                notes.append(json.load(f))
    if notes:
        row |= {"step": max(n["done"] for n in notes) - start, "import": max(n["import"] for n in notes),
                "rss_mb_ranks": sum(n["rss_mb"] for n in notes)}
    summary = os.path.join(folder, "run", "summary.json")
    if os.path.exists(summary):
        with open(summary) as f:
            row["step"] = json.load(f)["first_step_s"]
        assert 0 < row["step"] <= wall, f"first_step_s is {row['step']}, and the whole command took {wall} s"
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return row


def find_data():
    for folder in (os.path.join(CACHE, "data", "fashion-mnist"), "/usr/share/datasets/fashion-mnist"):
        if os.path.exists(os.path.join(folder, "train-images-idx3-ubyte.gz")):
            return folder
    sys.exit("cold.py: Fashion-MNIST is not here: scripts/fetch_data brings it, or give --data")


def find_torch():
    """Make torch importable for this process and its children, its bytecode compiled, or say how."""
    # Python that compiles torch's sources at every start is ten times slower: no fair peer.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if importlib.util.find_spec("torch") is None:
        wheel = os.path.join(CACHE, "libtorch-2.11.0")
        sys.path.append(wheel)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), wheel]))
    probe = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, text=True)
    if probe.returncode:
        reason = probe.stderr.strip().splitlines()[-1]
        sys.exit(f"cold.py: {sys.executable} cannot import torch ({reason}); --help says what to install")
    source = importlib.util.find_spec("torch").origin
    if not os.path.exists(importlib.util.cache_from_source(source)):
        sys.exit(f"cold.py: no compiled bytecode beside {source}, so Python's start would be measured too slow: "
                 "run python -m compileall on that folder")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--data", help="folder of the four gzipped IDX files")
    parser.add_argument("--torchrun", action="store_true", help="torchrun with two and four ranks as well")
    parser.add_argument("--mgt", default=os.path.join(REPOSITORY, "build", "bin", "mgt"), help="the program")
    parser.add_argument("--config", default="lenet_1gpu.yaml")
    parser.add_argument("--out", help="JSON file to write")
    parser.add_argument("--child", metavar="FOLDER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child, args.data)
    if not os.access(args.mgt, os.X_OK):
        sys.exit(f"cold.py: there is no program at {args.mgt}: scripts/setup builds it")
    find_torch()
    data = os.path.abspath(args.data or find_data())

    with tempfile.TemporaryDirectory() as folder:
        rank = [os.path.abspath(__file__), "--child", folder, "--data", data]
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]
        mgt = [args.mgt, "train", "--config", args.config, "--json", "--run-dir", os.path.join(folder, "run")]
        for value in ("max_steps=1", "batch_size=8", "threads=1", f"data.dir={data}"):
            mgt += ["--set", value]
        commands = {"python, nothing": [sys.executable, "-c", "pass"],
                    "python, import torch": [sys.executable, "-c", "import torch"],
                    "python, 1 rank": [sys.executable] + rank,
                    "mgt, 1 rank": mgt}
        if args.torchrun:
            commands |= {"torchrun, 2 ranks": torchrun + ["2"] + rank, "torchrun, 4 ranks": torchrun + ["4"] + rank}
        rows = {name: [] for name in commands}
        for repeat in range(args.repeats + 1):
            for name, command in commands.items():
                row = launch(command, folder)
                if repeat:
                    rows[name].append(row)

    import common
    cold = {name: {key: {q: round(v, 3) for q, v in common.quartiles([r[key] for r in found]).items()}
                   for key in found[0]} for name, found in rows.items()}
    # The ratio of each round, whose two commands ran one after the other.
    ratio = common.quartiles([p["step"] / m["step"] for p, m in zip(rows["python, 1 rank"], rows["mgt, 1 rank"])])
    for name, found in cold.items():
        print(f"{name:22}" + "".join(f"  {key} {found[key]['median']:.2f} s" for key in ("step", "exit") if key in found)
              + f"  {found['rss_mb_largest']['median']:.0f} MB", file=sys.stderr)
    print(f"python / mgt, first step: {ratio['median']:.2f} ({ratio['q1']:.2f} ... {ratio['q3']:.2f})", file=sys.stderr)
    common.report(args, {"cold": cold, "ratio_first_step": {q: round(v, 3) for q, v in ratio.items()}})


if __name__ == "__main__":
    main()
