"""`python -m benchmarks.story_speed`: the story of an INFO log on one core, in megabytes a second.

The log is what a cluster in use prints: for each line that says something, so many that do not (`--quiet-lines`). Time is
processor time, reading and telling together; the fastest of three runs.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tidegauge.story.story import story_of

AT = "[2026-01-01 {hour:02}:{minute:02}:00,{milli:03}] INFO "
QUIET = (
    f"{AT}[GroupCoordinator 1]: Preparing to rebalance group g-{{number}} in state PreparingRebalance with old generation "
    "{number} (__consumer_offsets-{partition}) (kafka.coordinator.group.GroupCoordinator)\n"
    f"{AT}[ProducerStateManager partition=orders-{{partition}}] Wrote producer snapshot at offset {{number}} with 0 "
    "producer ids in 1 ms. (org.apache.kafka.storage.internals.log.ProducerStateManager)\n"
)
SPEAKING = (
    f"{AT}[Broker id=1] Follower orders-{{partition}} starts at leader epoch {{number}} from offset {{number}} "
    "with partition epoch 7 and high watermark {number}. Current leader is 2. Previous leader Some(3) and previous leader "
    "epoch was 4. (state.change.logger)\n"
)


def write_log(path: Path, size: int, quiet_lines: int) -> int:
    """Write a log of at least so many bytes; return how many."""
    with path.open("w", encoding="utf-8") as out:
        number = 0
        while out.tell() < size:
            number += 1
            at = {"hour": number // 3600 % 24, "minute": number // 60 % 60, "milli": number % 1000}
            at |= {"number": number, "partition": number % 50}
            out.write(QUIET.format(**at) * (quiet_lines // 2) + SPEAKING.format(**at))
    return path.stat().st_size


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--quiet-lines", type=int, default=100, help="lines that say nothing, for each that does")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        size = write_log(path, args.megabytes * 1_000_000, args.quiet_lines)
        seconds = []
        for _ in range(3):
            begin = time.process_time()
            story = story_of([path])
            seconds.append(time.process_time() - begin)
    print(f"{size / 1e6:,.0f} MB, {len(story.entries):,} entries: {size / 1e6 / min(seconds):,.0f} MB/s of processor time")


if __name__ == "__main__":
    main()
