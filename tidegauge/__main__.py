"""`python -m tidegauge`: the command line, run by this interpreter."""

import sys

from tidegauge.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
