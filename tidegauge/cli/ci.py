"""tidegauge init, tidegauge summary: the beginning and the end of a CI job."""

import argparse
from pathlib import Path

from tidegauge.cli.terminal import echo
from tidegauge.util.errors import UsageError

LANGUAGES = {"python": "python adapter.py", "go": "./broker", "javascript": "node adapter.js"}
"""The languages that there is an example in, and what starts its adapter."""
BUILT_BY = {"go": "go build -o broker . && "}
"""What is typed before the adapter can be started, in a language that is compiled."""
PLACES = {"watermark.yml": ".github/workflows/watermark.yml"}
"""Where a file of an example belongs in a repository; every other one stays at its top."""


def init_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge init` to its parser."""
    parser.add_argument("language", choices=[*LANGUAGES], help="the language of the adapter")
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where to write (default: here)")


def init_command(args: argparse.Namespace) -> int:
    """Write files to start from: an adapter with a small broker that passes, a CI workflow and a list of known failures."""
    from importlib.resources import files as resources

    from tidegauge.util.files import directory

    folder = directory(args.folder)
    # The files of the example, by the place that each gets below the folder.
    shipped = (resources("tidegauge") / "drive" / "examples" / args.language).iterdir()
    files = {PLACES.get(file.name, file.name): file for file in shipped if file.is_file()}
    # Nothing of the user's is overwritten.
    existing = sorted(name for name in files if (folder / name).exists())
    if existing:
        raise UsageError(
            f"init: expected a directory without {existing[0]}, seen it in {folder}; name another, or move it away"
        )
    for name, file in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
        echo(str(target))
    command = LANGUAGES[args.language]
    inside = "" if folder == Path() else f"cd {folder} && "
    echo(f"\nnext: {inside}{BUILT_BY.get(args.language, '')}tidegauge drive --smoke -- {command}")
    echo("then put your broker in the place of the small one, step by step; tidegauge drive --json-schema has all lines")
    return 0


def summary_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge summary` to its parser."""
    parser.add_argument(
        "junit", nargs="+", metavar="FILE", help="JUnit XML: of check --out, probe --junit or pytest --junitxml"
    )
    parser.add_argument(
        "--known",
        metavar="FILE",
        help="the ids of cases that are known to fail, one per line; `flaky: ID` may fail. Any other failure fails the job, "
        "and so does a line that is no longer true",
    )
    parser.add_argument("--markdown", metavar="FILE", help="append the summary to FILE, such as $GITHUB_STEP_SUMMARY")
    parser.add_argument(
        "--badge", metavar="FILE", help="write the outcome to FILE as JSON for an endpoint badge of shields.io"
    )


def summary_command(args: argparse.Namespace) -> int:
    """Sum up the results of a CI job as Markdown, and compare them with a list of known failures."""
    from tidegauge.util.junit import badge, known_failures, markdown, on_github, read_cases, summarize, summary_annotations
    from tidegauge.util.version import SUITE_VERSION

    runs = [read_cases(Path(file)) for file in args.junit]
    known = known_failures(Path(args.known)) if args.known else {}
    # The names of the test suites, each once.
    title = ", ".join(dict.fromkeys(name for name, _ in runs))
    summary = summarize(title, [case for _, cases in runs for case in cases], known)
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
