"""tidegauge init."""

import argparse
from pathlib import Path

from tidegauge.cli.terminal import echo
from tidegauge.util.errors import UsageError

LANGUAGES = {"python": "python adapter.py", "go": "./broker", "javascript": "node adapter.js"}
"""The languages that there is an example in, and what starts its adapter."""
BUILT_BY = {"go": "go build -o broker . && "}
PLACES = {"watermark.yml": ".github/workflows/watermark.yml"}
"""Where a file of an example belongs in a repository; every other one stays at its top."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("language", choices=[*LANGUAGES], help="the language of the adapter")
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where to write (default: here)")


def run(args: argparse.Namespace) -> int:
    """Write an adapter with a small broker that passes, a CI workflow and a list of known failures, to begin with."""
    from importlib.resources import files as resources

    from tidegauge.util.files import directory

    folder = directory(args.folder)
    shipped = (resources("tidegauge") / "drive" / "examples" / args.language).iterdir()
    files = {PLACES.get(file.name, file.name): file for file in shipped if file.is_file()}
    there = sorted(name for name in files if (folder / name).exists())
    if there:
        raise UsageError(
            f"init: expected a directory without {there[0]}, seen it in {folder}; name another, or move it away"
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
