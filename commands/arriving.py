"""--follow with --spark: a directory is judged on Spark as Parquet files arrive in it."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from tidegauge.commands import masters
from tidegauge.impl.errors import UsageError

if TYPE_CHECKING:
    from tidegauge.conformance.judging.check import CheckOptions, Report

OF_LOGS = {"layout": "--layout", "topic": "--topic", "partition": "--partition", "begin": "--from", "end": "--to"}
"""Arguments of `check` that are about broker logs."""


def followed(
    args: argparse.Namespace, how: "CheckOptions", say: Callable[[str], None], note: Callable[[str], None]
) -> "Report":
    """The report on what came. `say` is told each rule that breaks at once, `note` what is wrong with the input."""
    if len(args.path) != 1:
        raise UsageError(f"check --spark --follow: expected one directory, seen {len(args.path)} paths")
    for flag, name in OF_LOGS.items():
        if getattr(args, flag):
            raise UsageError(
                f"check --spark --follow: expected no {name}, seen it; it is for broker logs: follow those without --spark"
            )
    if not args.results:
        raise UsageError("check --spark --follow: expected --results DIR, seen none; it holds what is judged")
    from tidegauge.spark_check.following import follow_on_spark

    return follow_on_spark(args.path[0], how, masters.chosen(args), args.results, args.until_idle, say, note)
