"""tidegauge story, tidegauge bundle: from whatever logs there are.

A *story* is what happened to each partition, in sentences. A *bundle* is one file with the parts of logs that check and
story read, to send to somebody.
"""

import argparse
import json
import sys
from contextlib import ExitStack
from pathlib import Path

from tidegauge.cli.options import add_bounds, add_parts, chosen_selection
from tidegauge.cli.terminal import aside, echo, silent
from tidegauge.util.errors import BAD, CONFORMS, UsageError
from tidegauge.util.version import PACKAGE_VERSION, SUITE_VERSION


def story_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge story` to its parser."""
    parser.add_argument("path", nargs="+", help="log files, directories of them, a bundle, or - for standard input")
    parser.add_argument("--json", action="store_true", help="print `story`, `losses`, `known_bugs` and `do` as JSON")
    add_parts(parser)
    add_bounds(parser)


def story_command(args: argparse.Namespace) -> int:
    """Tell what happened to each partition, what was lost and what to do, from whatever logs there are. No verdict."""
    from tidegauge.bundle.reading import opened
    from tidegauge.conformance.checking.inputs import open_input
    from tidegauge.story.sentences import story_text
    from tidegauge.story.story import story_of
    from tidegauge.util.untrusted_text import printable_json

    missing = [path for path in args.path if path != "-" and not Path(path).exists()]
    if missing:
        raise UsageError(f"story: expected a file or a directory, seen none at {missing[0]}; check the path")
    with ExitStack() as stack:
        # A bundle is unpacked, and says which part of the logs it was made of.
        inputs, selection = stack.enter_context(opened(args.path))
        # Of standard input and of pipes, which cannot be read twice, copies are made.
        paths = [stack.enter_context(open_input(path)).path for path in inputs]
        # Progress is for a person, not for the log of a CI job.
        echo_progress = aside if sys.stderr.isatty() and not args.quiet else silent
        story = story_of(paths, echo_progress, chosen_selection(args) or selection)
    if args.json:
        tool = {"name": "tidegauge", "version": PACKAGE_VERSION, "suite": SUITE_VERSION}
        echo(printable_json(json.dumps({"tool": tool, **story.as_json()}, indent=2, ensure_ascii=False)))
    else:
        echo(story_text(story))
    return CONFORMS if story.has_entries else BAD


def bundle_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge bundle` to its parser."""
    parser.add_argument("path", nargs="+", help="a log file, or a directory of logs or log directories")
    parser.add_argument("--out", metavar="FILE", default="bundle.tar.gz", help="the file to write (default: bundle.tar.gz)")
    parser.add_argument(
        "--redact",
        action="store_true",
        help="replace the names of hosts, addresses, topics, client ids, groups, users, racks and directories, each by the "
        "same one everywhere, and leave out lines that neither check nor story reads",
    )
    add_parts(parser)
    add_bounds(parser)


def bundle_command(args: argparse.Namespace) -> int:
    """Copy the parts of logs that check and story need into one file, which both read. Record contents are left out."""
    from tidegauge.bundle.writing import write_bundle
    from tidegauge.traces.problems import counted
    from tidegauge.util.files import refuse_unnamed
    from tidegauge.util.untrusted_text import visible

    # An empty path would be taken for the current directory.
    for path in args.path:
        refuse_unnamed(path)
    missing = [path for path in args.path if not Path(path).exists()]
    if missing:
        raise UsageError(f"bundle: expected a file or a directory, seen none at {missing[0]}; check the path")
    target = Path(args.out)
    contents = write_bundle([Path(path) for path in args.path], target, chosen_selection(args), args.redact)
    size = target.stat().st_size
    for problem in contents.problems:
        aside(visible(str(problem)))
    for left_out in () if args.quiet else contents.left_out:
        aside(visible(f"left out: {left_out}"))
    lines = f"{contents.kept_lines:,} of {counted(contents.lines, 'line')}"
    echo(
        f"{args.out}: {counted(contents.files, 'file')}, {lines}, {size:,} bytes"
        + (", names replaced" if args.redact else "")
    )
    return CONFORMS if contents.files else BAD
