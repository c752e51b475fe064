"""`python -m benchmarks.many_partitions`: `tidegauge check` of the INFO logs of a large cluster, in seconds and megabytes.

Of each partition the logs have what a fault leaves in most: the ISR shrinks and grows again, and the others truncate.
Nothing can be decided, and each line lacks the lines around it.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tidegauge.util.errors import UNDECIDED

BROKERS = (1, 2, 3)
SHRUNK = (
    "[Partition {tp} broker={node}] Shrinking ISR from 1,2,3 to {node}. Leader: (highWatermark: {at}, endOffset: {end}). "
    "Out of sync replicas: (brokerId: {other}, endOffset: {at}). (kafka.cluster.Partition)"
)
GROWN = "[Partition {tp} broker={node}] Expanding ISR from {node} to 1,2,3 (kafka.cluster.Partition)"
TRUNCATED = "[Log partition={tp}, dir=/var/lib/kafka/n{node}] Truncating to offset {at} (kafka.log.Log)"


def lines(node: int, partitions: int) -> Iterator[str]:
    """Yield the lines of a broker."""
    for at in range(partitions):
        seconds, millis = divmod(at * 20, 1000)
        stamp = f"[2026-11-28 {8 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02},{millis:03}] INFO "
        leads = at % len(BROKERS) + 1 == node
        for words in (SHRUNK, GROWN) if leads else (TRUNCATED,):
            yield stamp + words.format(tp=f"orders-{at}", node=node, other=node % len(BROKERS) + 1, at=at, end=at + 2) + "\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=5_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        for node in BROKERS:
            log = Path(folder) / f"n{node}" / "server.log"
            log.parent.mkdir()
            texts = list(lines(node, args.partitions))
            log.write_text("".join(texts), encoding="utf-8")
            count += len(texts)
        begin = time.monotonic()
        command = [sys.executable, "-P", "-m", "tidegauge", "check", folder, "--processes", "1", "--quiet"]
        exit_code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        if exit_code != UNDECIDED:
            raise SystemExit(f"expected exit code {UNDECIDED} of {' '.join(command)}; seen {exit_code}")
        seconds = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{args.partitions:,} partitions, {count:,} lines: {seconds:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of "
        f"processor time, {used.ru_maxrss / 1024:,.0f} MB"
    )


if __name__ == "__main__":
    main()
