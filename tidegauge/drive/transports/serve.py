"""The reference as a driven program: `python -m tidegauge.drive.transports.serve [--profile NAME] [--fault NAME]`.

It shows what a broker in any language has to do on its side, and is a broker to try the driver on: a safe one, one of
a generation of Kafka, or with a known bug.
"""

import argparse
import json
import sys

from tidegauge.drive.broker.contract import VERSION, Opening
from tidegauge.drive.broker.known_bugs import bug_named
from tidegauge.drive.broker.reference import reference, reference_with
from tidegauge.drive.broker.state import ReferenceBroker
from tidegauge.drive.broker.steps import EVERYTHING, step_of
from tidegauge.drive.contract import frozen
from tidegauge.drive.transports.lines import json_line
from tidegauge.impl.profiles import SAFE
from tidegauge.impl.releases import profile_named


def main() -> None:
    """Read steps from stdin, and write the reference's report of each to stdout, a line of JSON each, until stdin ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default=SAFE.name)
    parser.add_argument("--fault", help="a known bug: the broker is of the generation that differs by it")
    args = parser.parse_args()
    broker = reference_with(bug_named(args.fault)) if args.fault else reference(profile_named(args.profile))
    write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
    sys.stdin.readline()  # the driver's handshake
    can, reports = sorted(EVERYTHING.can), sorted(EVERYTHING.reports)
    write(json_line({"contract": VERSION, "name": args.fault or args.profile, "can": can, "reports": reports}))
    flush()
    replicas: dict[int, ReferenceBroker] = {}
    for text in sys.stdin:
        line = json.loads(text)
        partition, name = line["p"], line["step"]
        # The only line that gets no report.
        if name == "close":
            del replicas[partition]
            continue
        if name == "open":
            replicas[partition] = broker.opened(Opening(frozen(line["peers"]), line["min_insync_replicas"]))
            report = broker.report(replicas[partition])
        else:
            replicas[partition], report = broker.take_or_refuse(replicas[partition], step_of(line))
        write(json_line({"p": partition, **report}))
        flush()


if __name__ == "__main__":
    main()
