"""The rules proved with z3; its library is looked for where its package is, and not where an input lies."""

import builtins
import sys
from importlib.util import find_spec
from pathlib import Path

# z3 looks for its library in the current directory first, unless this names the directories (z3/z3core.py): libz3.so beside
# logs that somebody sent would be loaded. None: whoever takes the library of the system has it found by the loader.
_z3 = find_spec("z3")
if _z3 is not None and _z3.origin is not None and not hasattr(builtins, "Z3_LIB_DIRS"):
    _home = Path(_z3.origin).parent
    builtins.Z3_LIB_DIRS = [str(_home / "lib"), str(_home), str(Path(sys.prefix) / "lib"), None]  # type: ignore[attr-defined]
