"""Numba, imported so that it obeys no file of the current directory: the judge imports it from here only.

Numba reads `.numba_config.yaml` of the current directory when it is imported and before each compilation, if PyYAML is
installed. Such a file may overwrite any file of the user (`chrome_trace`), and lies where somebody sent logs. Its
environment variables (`NUMBA_..`) are the user's and count as ever.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _without_yaml() -> Iterator[None]:
    """Make Numba believe within the block that PyYAML is not installed: then it does not open the file."""
    missing = object()
    before: object = sys.modules.get("yaml", missing)
    sys.modules["yaml"] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A Numba config file is found")
            yield
    finally:
        if before is missing:
            del sys.modules["yaml"]
        else:
            sys.modules["yaml"] = before  # type: ignore[assignment]


with _without_yaml():
    import numba
    from llvmlite import binding
    from numba import types
    from numba.core import config

# Before each compilation it would look for the file again, if another package had imported Numba before, and would read it.
config._HAVE_YAML, config._config_fname = False, "\0"

__all__ = ["binding", "numba", "types"]
