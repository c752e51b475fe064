from pathlib import Path

# The directory of this package: its TLA+ modules are files that TLC reads.


SPEC = Path(__file__).parent
