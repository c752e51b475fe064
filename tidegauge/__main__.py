"""The entry point of `tidegauge` and `python -m tidegauge`."""

import signal
import sys


def run() -> int:
    """Run the command line; a second kind of end than its own, a signal or a closed pipe, is told in one line."""
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
    sys.exit(run())
