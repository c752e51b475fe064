"""--topic, --partition, --from, --to: which part of broker logs is judged; --processes: by how many processes at once."""

import argparse
from typing import TYPE_CHECKING

from tidegauge.commands.counts import positive
from tidegauge.impl.errors import UsageError

if TYPE_CHECKING:
    from tidegauge.traces.kafka.lines.selection import Selection


def arguments(parser: argparse.ArgumentParser) -> None:
    """Take them."""
    parser.add_argument("--topic", action="append", default=[], help="of broker logs: judge this topic; may be repeated")
    parser.add_argument(
        "--partition", action="append", default=[], metavar="TOPIC-N", help="judge this partition; may be repeated"
    )
    parser.add_argument("--from", dest="begin", metavar="TIME", help="read lines from this time on, as 2026-11-21T08:27:15")
    parser.add_argument("--to", dest="end", metavar="TIME", help="read lines up to this time")
    parser.add_argument(
        "--processes",
        type=positive,
        help="processes that judge large logs and large NDJSON side by side (default: one per core)",
    )


def chosen(args: argparse.Namespace) -> "Selection | None":
    """What was asked for, if anything was. Raises UsageError for what is no time and no partition."""
    from tidegauge.traces.kafka.lines.selection import Selection

    if not (args.topic or args.partition or args.begin or args.end):
        return None
    for name in args.partition:
        if not name.rpartition("-")[0] or not name.rpartition("-")[2].isdecimal():
            raise UsageError(f"--partition: expected a topic and a number such as orders-0, seen {name!r}")
    begin, end = _time("--from", args.begin), _time("--to", args.end)
    if begin is not None and end is not None and end < begin:
        raise UsageError(f"--to: expected a time behind --from {args.begin}, seen {args.end}")
    return Selection(frozenset(args.topic), frozenset(args.partition), begin, end)


def _time(flag: str, text: str | None) -> int | None:
    from tidegauge.traces.kafka.lines.layout.dates import moment

    if text is None:
        return None
    found = moment(text)
    if found is None:
        raise UsageError(f"{flag}: expected a day and a time such as 2026-11-21T08:27:15, seen {text!r}")
    return found
