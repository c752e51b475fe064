"""The adapter: a line of JSON for each step, a line of JSON for each report."""

import json
import sys

from broker import Replica

sys.stdin.readline()  # the handshake of the suite
CAN, REPORTS = ["metadata", "append", "fetch"], ["result", "leo", "hw"]
print(json.dumps({"contract": 1, "name": "example-python", "can": CAN, "reports": REPORTS}), flush=True)
replicas = {}
for line in sys.stdin:
    given = json.loads(line)
    p, step = given.pop("p"), given.pop("step")
    if step == "close":
        del replicas[p]
        continue
    if step == "open":
        replicas[p], result = Replica(given["peers"], given["min_insync_replicas"]), None
    else:
        result = getattr(replicas[p], step)(**given)
    print(json.dumps({"p": p, "result": result, "leo": len(replicas[p].log), "hw": replicas[p].hw}), flush=True)
