"""--spark [MASTER]: on which Spark; without a master on all cores of this machine."""

import argparse

HERE = True
"""What stands for this machine: no text, for argparse would read that as if somebody had written it."""
MASTERS = ("local", "spark://", "yarn", "k8s://")
"""How the name of a master begins (Spark, Submitting Applications, Master URLs)."""


def arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """Take it."""
    parser.add_argument(
        "--spark",
        nargs="?",
        const=HERE,
        type=_master,
        metavar="MASTER",
        help=f"{what}; spark://HOST:PORT, yarn, k8s://... or local[N] (default: all cores of this machine)",
    )


def chosen(args: argparse.Namespace) -> str:
    """The master that was asked for."""
    return f"local[{getattr(args, 'processes', None) or '*'}]" if args.spark is HERE else str(args.spark)


def _master(text: str) -> str:
    if not text.startswith(MASTERS):
        raise argparse.ArgumentTypeError(
            f"expected a master such as spark://host:7077, local[2], yarn or k8s://..., seen {text!r}; "
            "put --spark last for this machine"
        )
    return text
