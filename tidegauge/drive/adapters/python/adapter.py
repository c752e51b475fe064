"""The toy broker as a driven program: `tidegauge drive -- python adapter.py [--bug]`. Yours needs no more than this."""

import json
import sys
from typing import Any

from toy_broker import ToyReplica  # type: ignore[import-not-found]

CAN = [
    "metadata",
    "append",
    "fetch",
    "offsets_for_leader_epoch",
    "fetch_response",
    "lose_response",
    "lag",
    "lag_apart",
    "alter_partition_response",
    "crash",
]
REPORTS = ["result", "requests", "proposal", "leo", "hw", "ends"]


def report(replica: ToyReplica, result: Any) -> dict[str, Any]:
    """Return the report of a replica after a step; `result`: the response to the step's request, None without one."""
    return {
        "result": result,
        "requests": replica.requests,
        "proposal": replica.in_flight,
        "leo": len(replica.log),
        "hw": replica.hw,
        "ends": [replica.end_of(epoch) for epoch in range(replica.highest + 1)],
    }


def main() -> None:
    """Read a step from stdin, give it to its partition's replica and write the report to stdout, until stdin ends."""
    sys.stdin.readline()  # the handshake of the driver: the version of the contract, its steps and fields
    print(json.dumps({"contract": 1, "name": "toy", "can": CAN, "reports": REPORTS}), flush=True)
    replicas: dict[int, ToyReplica] = {}
    for line in sys.stdin:
        given = json.loads(line)
        p, step = given.pop("p"), given.pop("step")
        result = None
        if step == "close":
            del replicas[p]
            continue
        if step == "open":
            replicas[p] = ToyReplica(given["peers"], given["min_insync_replicas"], bug="--bug" in sys.argv)
        else:
            result = getattr(replicas[p], step)(**given)
            replicas[p].ask()
        print(json.dumps({"p": p, **report(replicas[p], result)}), flush=True)


main()
