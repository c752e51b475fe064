"""`tidegauge` and `python -m tidegauge`: the command line, run by this interpreter."""

import sys


def run() -> int:
    """The process: what `main` does, with the files of the checkout one stands in."""
    from tidegauge.commands.terminal import interrupted, nobody_reads  # noqa: PLC0415  Ctrl-C may come while the rest loads

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
