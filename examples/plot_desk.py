"""
A day at the desk: is the machine still right, and who has time?
================================================================

A fitted model is only the beginning. At the :doc:`desk </desk/index>`, cases arrive, and the model decides
at once who takes each of them. Experts answer within their limits, and random audits tell how often the
machine errs. This example makes a desk in a temporary folder, and plays the parts of the laboratory and of
its five readers.
"""

# %%
# The nights are real, and so are the answers of the five readers. A case is half a minute of sleep, and its
# fields are the votes of six published networks on it, and on the half minutes before and after. There are
# 600 of these epochs to learn from, and 1,500 epochs of other nights are to come. The truth is what most
# readers say.

import atexit
import csv
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.request
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from deferlearn.datasets import load_sleep

sleep = load_sleep(classes="stages", context=1)
stages = np.array(sleep.target_names)
readers = [f"reader_{k}" for k in range(1, 6)]
votes = (sleep.answers[:, :, None] == np.arange(5)).sum(axis=1)
clear = ~np.isnan(sleep.answers).any(axis=1) & (votes.max(axis=1) >= 3)
networks = sleep.data.reshape(len(votes), 3, len(sleep.network_names), 5).mean(axis=2)
names = [stage + place for place in (" before", "", " after") for stage in stages]

rng = np.random.default_rng(0)
old = rng.permutation(np.flatnonzero(clear & (sleep.groups % 2 == 0)))[:600]
new = rng.permutation(np.flatnonzero(clear & (sleep.groups % 2 == 1)))[:1500]


def epoch(row):
    """What is known about an epoch, what was true, and what each reader said."""
    fields = dict(zip(names, networks[row].ravel().round(2).tolist(), strict=True))
    said = dict(zip(readers, stages[sleep.answers[row].astype(int)].tolist(), strict=True))
    return {"epoch": f"e{row}", **fields, "stage": str(stages[votes[row].argmax()]), **said}


coming = {one["epoch"]: one for one in map(epoch, new)}
folder = Path(tempfile.mkdtemp())


def write(name, rows):
    """A table in the folder of the desk."""
    with open(folder / name, "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


write("cases.csv", [epoch(row) for row in old])

# %%
# Four commands make the desk: the model, the desk with its database, a rule, and a key for programs. The
# networks cannot be retrained, so their votes are the machine's scores. Each reader may take 5% of the
# cases. A tenth of the machine's cases go to a reader, too: that is a lot, so that one day is enough to
# show something. The limits of the readers are those of a day with 2,000 cases.

program = shutil.which("deferlearn", path=Path(sys.executable).parent)


def command(*words):
    """Run `deferlearn ...` in the folder, and return what it prints."""
    done = subprocess.run(
        [program, *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


scores = [word for stage in sorted(stages) for word in ("--machine-score", stage)]
out = ["--no-evaluate", "--out", "model.skops"]
experts = [word for name in readers for word in ("--expert", f"{name}=5%")]
command("fit", "cases.csv", "--label", "stage", "--id", "epoch", *scores, *experts, *out)
command("desk", "init", "--model", "model.skops", "--cases-per-day", "2000")
command("desk", "config", "--set", "audit_share=0.1")
scopes = ["cases:write", "answers:write", "experts:write", "models:write"]
key = command("desk", "key", "add", "story", *(w for one in scopes for w in ("--scope", one)))

# %%
# The desk is a server, and any program can be its client.

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
address = f"http://127.0.0.1:{port}"
server = subprocess.Popen(
    [program, "desk", "serve", "--port", str(port), "--log-level", "warning"],
    cwd=folder,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)


def clean_up():
    """Stop the server and remove the folder."""
    server.terminate()
    try:
        server.wait(30)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait(30)
    shutil.rmtree(folder, ignore_errors=True)


atexit.register(clean_up)  # if this program ends before the day does


def call(method, path, body=None):
    """A request to the desk; None if the reply is empty."""
    request = urllib.request.Request(address + path, method=method)
    request.add_header("Authorization", f"Bearer {key.strip()}")
    request.add_header("Content-Type", "application/json")
    content = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(request, content, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


for _ in range(600):
    if server.poll() is not None:
        raise RuntimeError(f"the server has ended with status {server.returncode}")
    try:
        call("GET", "/readyz")
        break
    except OSError:  # nobody listens yet, or the desk is not ready
        time.sleep(0.1)
else:
    raise RuntimeError("the server is not ready after a minute")

# %%
# The day has five parts. In each of them 300 cases arrive, the readers answer whatever waits for them, and
# the truth becomes known. Then we ask the desk what it knows about itself.

numbers = {one["name"]: one["id"] for one in call("GET", "/api/v1/experts")}
ids, answered_by, history = list(coming), {}, []

for part in range(5):
    batch = [coming[name] for name in ids[300 * part : 300 * (part + 1)]]
    cases = [{"id": one["epoch"], "fields": {name: one[name] for name in names}} for one in batch]
    for one in call("POST", "/api/v1/cases", cases):
        decision = one["case"]["decision"]
        answered_by[one["id"]] = (decision["deferred"], decision["machine_answer"])
    for reader, number in numbers.items():
        while case := call("POST", "/api/v1/queue/next", {"expert": number}):
            said = {"token": case["token"], "answer": coming[case["case"]][reader]}
            call("POST", f"/api/v1/queue/{case['reading']}/answer", said)
    write("known.csv", [{"epoch": one["epoch"], "stage": one["stage"]} for one in batch])
    command("desk", "import", "known.csv", "--id", "epoch", "--truth", "stage", "--only-truth")
    history.append(call("GET", "/api/v1/monitoring")["figures"])

share = np.mean([deferred for deferred, _ in answered_by.values()])
print(f"the machine gave {share:.0%} of {len(answered_by):,} cases to readers")

# %%
# How often is the machine wrong in the cases that it keeps? The desk estimates this from the audits alone.
# They are few, and the interval says how much they tell. Here the truth of all cases is known, so we can
# see whether the interval is right. The limits of the readers are never exceeded, and audits count towards
# them.


def shown(figures, name):
    """The figures of a name, by what they are about."""
    return {one["about"]: one for one in figures if one["name"] == name}


def tell(figure):
    """What the desk says about a number."""
    print(textwrap.fill(figure["sentence"], 90))


def with_intervals(ax, places, figures, **looks):
    """Values with their 95% intervals, in percent."""
    value, low, high = (
        100 * np.array([one[k] for one in figures]) for k in ("value", "low", "high")
    )
    ax.errorbar(places, value, [value - low, high - value], fmt="o", capsize=4, **looks)


seen = [300 * (part + 1) for part in range(5)]
true = []
for n in seen:
    kept = [
        (name, said) for name, (deferred, said) in list(answered_by.items())[:n] if not deferred
    ]
    true.append(100 * np.mean([said != coming[name]["stage"] for name, said in kept]))
errors = [shown(figures, "machine's error")[""] for figures in history]
load = shown(history[-1], "load")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
with_intervals(left, seen, errors, color="#0072B2", label="estimated from audits")
left.plot(seen, true, "_", color="#D55E00", markersize=16, markeredgewidth=3, label="true")
left.set(title="machine's error in the cases it keeps", xlabel="cases so far", ylabel="%")
left.set(xticks=seen, ylim=(0, 25))
left.legend(loc="upper right")
right.barh(readers, [load[name]["expected"] for name in readers], color="0.9", label="limit")
given = [load[name]["value"] for name in readers]
right.barh(readers, given, height=0.5, color="#009E73", label="readings, with audits")
right.set(title="load of the readers", xlabel="readings today", ylim=(-0.6, 5.9))
right.invert_yaxis()
right.legend(loc="lower center", ncols=2)
tell(errors[-1])

# %%
# Do the readers err as often as the model expects? Not all of them: from 600 epochs the model could not
# learn who is good at the hard ones.

experts_errors = shown(history[-1], "expert's error")
figure, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
found = [experts_errors[name] for name in readers]
with_intervals(ax, readers, found, color="#0072B2", label="found, 95% interval")
expected = [100 * one["expected"] for one in found]
ax.plot(readers, expected, "D", color="0.5", label="expected by the model")
ax.set(title="readers' errors in the cases that they were given", ylabel="%", ylim=(0, None))
ax.legend()
tell(experts_errors["reader_4"])

# %%
# So the desk should learn. `deferlearn desk refit` fits the next model on three quarters of the day, and
# compares it with the present one on the rest of the day, case by case. If the difference is not clear, the
# report says so. Nothing changes until a supervisor activates the new model.

command("desk", "refit")
report = call("GET", "/api/v1/models/2/report")["report"]
tell(report["comparison"])

# %%
# The day is over.

clean_up()
