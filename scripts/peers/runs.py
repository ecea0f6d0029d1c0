"""Shared by zero.py and pipeline.py, which need no torch themselves: calls of programs, statistics, the report."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(FOLDER))
SCRIPT = os.path.basename(sys.argv[0])


# ---------------------------------------------------------------- programs
def call(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{SCRIPT}: exit {done.returncode} of {' '.join(command)}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def mgt(args, verb, config, settings, *more):
    command = [args.mgt, verb, "--config", os.path.join(REPOSITORY, "configs", config), *more]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return call(command)


def train(args, config, settings):
    """Seconds of training in each epoch, and the summary of the run."""
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        summary = json.loads(mgt(args, "train", config, settings, "--json", "--run-dir", run).splitlines()[-1])
        with open(os.path.join(run, "metrics.jsonl")) as f:
            records = [record for record in map(json.loads, f) if record["event"] == "epoch"]
    return [record["train_s"] for record in records], summary


def verify(args, config, settings, ranks):
    """The number of runs that were compared; `mgt verify` fails where one differs."""
    printed = mgt(args, "verify", config, settings, "--world", str(ranks))
    return sum(line.endswith(": equal") for line in printed.splitlines())


def peer(args, ranks, script, *more):
    """What rank 0 of a peer script reports."""
    command = [args.python, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks),
               os.path.join(FOLDER, script), *more]
    return json.loads(call(command).splitlines()[-1])


def peers_there(args, needs):
    found = subprocess.run([args.python, "-c", needs], capture_output=True, text=True,
                           env=os.environ | {"DS_ACCELERATOR": "cpu"})
    if found.returncode:
        print(f"{SCRIPT}: without peers: {args.python} cannot {needs}; --help says what to install", file=sys.stderr)
    return found.returncode == 0


# ---------------------------------------------------------------- statistics and report
def quartiles(values):
    if len(values) < 2:
        return {"q1": values[0], "median": values[0], "q3": values[0], "n": len(values)}
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return {"q1": round(q1, 4), "median": round(median, 4), "q3": round(q3, 4), "n": len(values)}


def spread(found):
    return f"{found['median']:.2f} ({found['q1']:.2f} to {found['q3']:.2f})"


def parser(description):
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--no-verify", action="store_true")
    made.add_argument("--mgt", default=os.path.join(REPOSITORY, "build", "bin", "mgt"), help="the program")
    made.add_argument("--python", default=sys.executable, help="interpreter of the peers")
    made.add_argument("--out", help="JSON file to write")
    made.add_argument("--from", dest="from_file", metavar="FILE", help="print the table of such a file again")
    return made


def report(args, measured, table):
    """Print the table of what `measured(args)` finds, or of an earlier file."""
    if args.from_file:
        with open(args.from_file) as f:
            return print(table(json.load(f)))
    if not os.access(args.mgt, os.X_OK):
        sys.exit(f"{SCRIPT}: there is no program at {args.mgt}: scripts/setup builds it")
    record = {"script": SCRIPT, "date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count()} | measured(args)
    if args.out:
        with open(args.out, "w") as f:
            json.dump(record, f, indent=1)
            f.write("\n")
    print(table(record))
