"""`tidegauge` and `python -m tidegauge`: the command line, run by this interpreter."""

import signal
import sys


def run() -> int:
    """The process: what `main` does, with the files of the checkout one stands in."""
    from tidegauge.commands.terminal import interrupted, nobody_reads  # noqa: PLC0415  Ctrl-C may come while the rest loads

    # as Ctrl-C: else what it has started, and the folders it works in, outlive it
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from tidegauge.commands.checkout import run_own_files  # noqa: PLC0415
        from tidegauge.commands.main import main  # noqa: PLC0415

        run_own_files(sys.argv[1:])
        return main()
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:
        return nobody_reads()


if __name__ == "__main__":
    sys.exit(run())
