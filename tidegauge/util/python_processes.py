"""Start Python so that nothing beside an input runs: every Python process of this package is started from here.

Whoever judges logs works in the folder that somebody sent. `python -m` and `python -c` put the current directory first on
the path of modules, where a file named pandas.py or a folder named multiprocessing would then be run. So processes start in
safe-path mode (`python -P`, PYTHONSAFEPATH), and find this package by its own place.

A program of the user, such as an adapter, is not started from here: it may need what lies beside it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker, util
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any

PACKAGE_ROOT = Path(__file__).parents[2]
"""The directory that this package is imported from."""

SAFE_PATH_VARIABLE = {"PYTHONSAFEPATH": "1"}
"""For processes that another program starts, such as Spark: `-P` as an environment variable (Python 3.11)."""

# Put the package's root on the path if it is not there, take it out of the arguments, and run the module named next.
_RUN_MODULE = "import runpy, sys; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root); "
_RUN_MODULE += "module = sys.argv[1]; sys.argv[:2] = sys.argv[:1]; runpy.run_module(module, None, '__main__', True)"


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package, or of one beside it, in safe-path mode."""
    # Not `-P -m`: a checkout that is not installed is found by the current directory only, which -P leaves out.
    return [sys.executable, "-P", "-c", _RUN_MODULE, str(PACKAGE_ROOT), module, *arguments]


def bare_python_command(script: str, *arguments: str) -> list[str]:
    """Return the command that runs a file with the standard library alone; neither site-packages nor the environment."""
    # -I: isolated, so PYTHON.. variables and the current directory count for nothing; -S: without site-packages.
    return [sys.executable, "-I", "-S", script, *arguments]


class _SafePathProcess(SpawnProcess):
    """A process of multiprocessing that starts in safe-path mode."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  multiprocessing's name
        """Start the process of an object of multiprocessing."""
        with _safe_path_flag():
            return SpawnProcess._Popen(process_obj)


class _SafePathContext(SpawnContext):
    """The context of multiprocessing that makes such processes."""

    Process = _SafePathProcess


def process_context() -> SpawnContext:
    """Return a context of multiprocessing that starts processes, and the tracker of their resources, in safe-path mode."""
    # Started here: the first lock or pipe would start the tracker without the flag.
    with _safe_path_flag():
        resource_tracker.ensure_running()
    return _SafePathContext()


@contextmanager
def _safe_path_flag() -> Iterator[None]:
    """Start the Python processes of multiprocessing with -P within the block."""
    # multiprocessing passes on the flags of this interpreter and offers no way to add one, so its function is replaced. The
    # environment variable would be inherited by the programs that a worker starts, adapters among them.
    module: Any = util
    original = module._args_from_interpreter_flags
    module._args_from_interpreter_flags = lambda: list(dict.fromkeys([*original(), "-P"]))  # once, if it is there already
    try:
        yield
    finally:
        module._args_from_interpreter_flags = original
