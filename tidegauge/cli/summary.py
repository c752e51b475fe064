"""tidegauge summary."""

import argparse
from pathlib import Path

from tidegauge.cli.terminal import echo


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "junit", nargs="+", metavar="FILE", help="JUnit XML: of check --out, probe --junit or pytest --junitxml"
    )
    parser.add_argument(
        "--known",
        metavar="FILE",
        help="the ids of cases that are known to fail, a line each; `flaky: ID`: at times. Whatever else fails, and a line "
        "that is stale, fails the job",
    )
    parser.add_argument("--markdown", metavar="FILE", help="append the summary to FILE, such as $GITHUB_STEP_SUMMARY")
    parser.add_argument(
        "--badge", metavar="FILE", help="write the outcome to FILE as JSON for an endpoint badge of shields.io"
    )


def run(args: argparse.Namespace) -> int:
    """Sum up the results of a CI job as Markdown, and hold them against a list of known failures."""
    from tidegauge.util.job_summary import (
        badge,
        known_failures,
        markdown,
        on_github,
        read_cases,
        summarize,
        summary_annotations,
    )
    from tidegauge.util.version import SUITE_VERSION

    runs = [read_cases(Path(file)) for file in args.junit]
    known = known_failures(Path(args.known)) if args.known else {}
    summary = summarize(
        ", ".join(dict.fromkeys(name for name, _ in runs)), [case for _, cases in runs for case in cases], known
    )
    text = markdown(summary)
    echo(text.rstrip())
    if args.markdown:
        with Path(args.markdown).open("a", encoding="utf-8") as file:
            file.write(text)
    if args.badge:
        Path(args.badge).write_text(badge(summary.exit_code, f"suite {SUITE_VERSION}"), encoding="utf-8")
    if on_github():
        for line in summary_annotations(summary):
            echo(line)
    return summary.exit_code
