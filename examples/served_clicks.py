"""A service: begin a stream over HTTP, send it rows, predict, and open its dashboard.

Run it: python examples/served_clicks.py; make demo ends with it. The rows are simulated, the noise is not.
"""

import argparse
import os
import shlex
import sys
from pathlib import Path

from taciturn import Ledger, Privacy
from taciturn.client import Client
from taciturn.datasets import ad_impressions
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.store import Store

arguments = argparse.ArgumentParser()
arguments.add_argument("--rows", type=int, default=40_000)
arguments.add_argument("--out", type=Path, default=Path("reproduced"), help="folder of the database")
options = arguments.parse_args()

impressions = ad_impressions(options.rows)
contract = {
    "privacy": {"epsilon": 1.0, "delta": 1e-6},
    "target": {"column": "clicked", "positive": ["yes"]},
    "learning": {"horizon": 100_000, "release": 500, "feature_bound": 2.0},
    "columns": {name: {"range": [-0.5, 0.5]} for name in impressions.names},
}
labels = ["yes" if y > 0.0 else "no" for y in impressions.y]
rows = [
    dict(zip(impressions.names, x, strict=True)) | {"clicked": clicked}
    for x, clicked in zip(impressions.X.tolist(), labels, strict=True)
]
options.out.mkdir(parents=True, exist_ok=True)
address = options.out / "clicks.db"
for old in options.out.glob("clicks.db*"):  # of an earlier demonstration
    old.unlink()
Ledger.create(address, Privacy(2.0, 1e-6), population="visitors")  # one budget for all models of these people
service = Service(Store(address), tick=0.1)
_, token = service.tokens.create(["admin"], label="the demo", seconds=86_400)

with running(service) as url, Client(url, token) as client:
    made = client.create("ad-clicks", contract, ledger="visitors")
    learnt = client.learn("ad-clicks", rows)
    models = client.live("ad-clicks")  # as they become visible, at ticks of a public clock
    latest = next(model for model in models if model.t > learnt.last - 500)
    chances = client.predict("ad-clicks", rows[:3], probabilities=True).probabilities or []

print(f"A service learnt from rows {learnt.first:,} to {learnt.last:,}, and published {latest.k:,} models.")
clicks = ", ".join(f"{chance[-1]:.0%}" for chance in chances if chance)
print(f"It predicts a click on the first three ads with {clicks}; clicked: {', '.join(labels[:3])}.")
print(f"\nWhat is promised. {made['guarantee']}\n")
command = Path(os.path.relpath(Path(sys.executable).parent / "taciturn"))
print(f"Its dashboard:  {command} serve --store {shlex.quote(str(address))}")
print(f"Then open       http://127.0.0.1:8000/streams/ad-clicks\nwith the token  {token}")
