"""--follow, --until-idle: an input is judged as it grows (conformance/follow, on Spark spark_check/follow.py)."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.cli.options import chosen_master, seconds
from tidegauge.util.errors import UsageError
from tidegauge.util.files import elsewhere

if TYPE_CHECKING:
    from tidegauge.conformance.checking.check import CheckOptions, Report
    from tidegauge.conformance.follow.loop import Publish, Source

STDIN = "-"
LOG_OPTIONS = {"layout": "--layout", "topic": "--topic", "partition": "--partition", "begin": "--from", "end": "--to"}
"""Options of `check` that are about broker logs."""
COMPLETE_INPUT_OPTIONS = {"out": "--out", **LOG_OPTIONS, "processes": "--processes"}
"""Options of `check` that need an input that is complete; broker logs take --layout all the same."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--follow",
        action="store_true",
        help="judge an NDJSON file, standard input (-) or a directory of broker logs as they grow, with --spark a directory "
        "in which Parquet files arrive: failures are printed as soon as they are known, the report at the end (after "
        "Ctrl-C, or when standard input ends)",
    )
    parser.add_argument(
        "--until-idle", type=seconds, metavar="SECONDS", help="with --follow: end when nothing has arrived for this long"
    )


def followed(
    args: argparse.Namespace, how: "CheckOptions", say: Callable[[str], None], note: Callable[[str], None]
) -> "Report":
    """Follow the input and return the report. `say` prints failures, `note` all other news."""
    if args.spark:
        return _on_spark(args, how, say, note)
    from tidegauge.conformance.follow.loop import follow, publisher

    return follow(_source(args, how, publisher(say, note)), args.until_idle)


def _on_spark(
    args: argparse.Namespace, how: "CheckOptions", say: Callable[[str], None], note: Callable[[str], None]
) -> "Report":
    if len(args.path) != 1:
        raise UsageError(f"check --spark --follow: expected one directory, seen {len(args.path)} paths")
    for name, option in LOG_OPTIONS.items():
        if getattr(args, name):
            raise UsageError(
                f"check --spark --follow: expected no {option}, which is for broker logs; follow those without --spark"
            )
    if not args.results:
        raise UsageError("check --spark --follow: expected --results DIR, seen none; name a directory for the results")
    from tidegauge.spark_check.follow import follow_on_spark

    return follow_on_spark(args.path[0], how, chosen_master(args), args.results, args.until_idle, say, note)


def _source(args: argparse.Namespace, how: "CheckOptions", publish: "Publish") -> "Source":
    """Make the source for the one path. Raises UsageError for what cannot be followed."""
    from tidegauge.conformance.checking.inputs import is_parquet
    from tidegauge.conformance.follow.broker_logs import BrokerLogs
    from tidegauge.conformance.follow.ndjson import NdjsonFile, StandardInput
    from tidegauge.traces.kafka_logs import is_log

    if len(args.path) != 1:
        raise UsageError(f"check --follow: expected one path, or - for standard input, seen {len(args.path)} paths")
    (path,) = args.path
    if uri := elsewhere(path):
        raise UsageError(
            f"check --follow: {uri}: expected a path of this machine, seen a URI; "
            "add --spark to follow Parquet where it lies"
        )
    # A file of Parquet magic is no log, whatever its name.
    broker_logs = path != STDIN and (Path(path).is_dir() or (not is_parquet(Path(path)) and is_log(Path(path))))
    for name, option in COMPLETE_INPUT_OPTIONS.items():
        if getattr(args, name) and not (broker_logs and name == "layout"):
            raise UsageError(
                f"check --follow: expected no {option}, which needs a complete input; run check without --follow"
            )
    if path == STDIN:
        return StandardInput(how, publish)
    if broker_logs:
        return BrokerLogs(Path(path), how, publish)
    if is_parquet(Path(path)):
        raise UsageError(
            f"check --follow: {path}: expected NDJSON or broker logs, seen a Parquet file; "
            "run check without --follow, again each time the file has grown"
        )
    return NdjsonFile(str(path), how, publish)
