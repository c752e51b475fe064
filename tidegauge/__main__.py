"""The entry point of `tidegauge` and `python -m tidegauge`."""

import os
import sys


def run() -> int:
    """Run the command line and return its exit code, also when a signal or a closed pipe ends it while it loads."""
    import signal  # noqa: PLC0415  not before the current directory has left the path of modules

    from tidegauge.cli.terminal import interrupted, nobody_reads  # noqa: PLC0415  Ctrl-C may come while the rest loads

    # A SIGTERM ends as Ctrl-C does: otherwise the processes that were started, and their folders, outlive this one.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from tidegauge.cli.main import main  # noqa: PLC0415

        return main()
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:
        return nobody_reads()


if __name__ == "__main__":
    # `python -m` puts the current directory first on the path of modules: what lies beside an input would be run
    # (util.python_processes). It stays where this package is imported from it. No pathlib, which would be imported from it.
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):  # noqa: PTH120
        del sys.path[0]
    sys.exit(run())
