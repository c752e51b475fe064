"""`python -m validation.results [FILE or DIRECTORY ...] --out PAGE`: the table of many results as one HTML page.

Without names it is the table of our own, in `validation/results/runs`; `--collect` makes those anew first.
"""

import argparse
import json
import sys
from pathlib import Path

from tidegauge.util.errors import BAD, CONFORMS, UsageError
from tidegauge.util.files import replacing
from validation.results.matrix import matrix_page, read_artefacts
from validation.results.own_results import RUNS, ours


def main() -> int:
    """Make the page."""
    parser = argparse.ArgumentParser(prog="python -m validation.results", description=__doc__)
    parser.add_argument("artefact", nargs="*", type=Path, help="what --results wrote, or directories of such files")
    parser.add_argument("--out", type=Path, default=Path("results.html"), metavar="PAGE", help="default results.html")
    parser.add_argument("--collect", action="store_true", help="make our own artefacts anew, from recordings and probes")
    args = parser.parse_args()
    try:
        if args.collect:
            for name, data in ours():
                with replacing(RUNS / name) as beside:
                    beside.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
                sys.stderr.write(f"{name}\n")
        page = matrix_page(read_artefacts(args.artefact or [RUNS]))
        with replacing(args.out) as beside:
            beside.write_text(page, encoding="utf-8")
    except UsageError as problem:
        sys.stderr.write(f"{problem}\n")
        return BAD
    return CONFORMS


if __name__ == "__main__":
    sys.exit(main())
