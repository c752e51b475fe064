"""`tidegauge` and `python -m tidegauge`: the command line, run by this interpreter."""

import sys

from tidegauge.commands.checkout import run_own_files
from tidegauge.commands.main import main


def run() -> int:
    """The process: what `main` does, with the files of the checkout one stands in."""
    run_own_files(sys.argv[1:])
    return main()


if __name__ == "__main__":
    sys.exit(run())
