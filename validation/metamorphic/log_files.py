"""The files of a capture as lines, and the choice of some of them: those of a node, of the brokers, of a logger."""

from collections.abc import Callable, Sequence
from random import Random

Files = dict[str, list[str]]
"""The text logs of a capture as lines, by path (`n1/server.log`)."""

Choice = Callable[[Random, Files], Sequence[str]]


def node(path: str) -> str:
    """The folder a file stands in."""
    return path.partition("/")[0]


def brokers(files: Files) -> list[str]:
    """The folders that hold replicas: their requests are fetches, or their lines name a log."""
    return sorted({node(path) for path, lines in files.items() if any("UnifiedLog partition=" in line for line in lines)})


def controllers(files: Files) -> list[str]:
    """The folders without replicas."""
    return sorted({node(path) for path in files} - set(brokers(files)))


def logs_of(files: Files, name: str = ".log", least: int = 20) -> list[str]:
    """Files worth taking something from; the longest one where none is long."""
    fitting = sorted(path for path, lines in files.items() if path.endswith(name) and len(lines) >= least)
    return fitting or [max(sorted(files), key=lambda path: len(files[path]))]


def everything(_random: Random, files: Files) -> list[str]:
    """Every file."""
    return sorted(files)


def a_node(random: Random, files: Files) -> list[str]:
    """The files of one node."""
    who = random.choice(sorted({node(path) for path in files}))
    return sorted(path for path in files if node(path) == who)


def a_broker(random: Random, files: Files) -> list[str]:
    """Those of one node that holds replicas."""
    who = random.choice(brokers(files) or [node(path) for path in files])
    return sorted(path for path in files if node(path) == who)


def but_one_broker(random: Random, files: Files) -> list[str]:
    """All but those of one node that holds replicas."""
    who = random.choice(brokers(files) or [node(path) for path in files])
    return sorted(path for path in files if node(path) != who)


def the_controller(_random: Random, files: Files) -> list[str]:
    """Those of the nodes without replicas."""
    return sorted(path for path in files if node(path) in controllers(files))


def the_brokers(_random: Random, files: Files) -> list[str]:
    """Those of the nodes with replicas."""
    return sorted(path for path in files if node(path) in brokers(files))


def a_request_log(random: Random, files: Files) -> list[str]:
    """One request log."""
    return [random.choice(logs_of(files, "request.log"))]


def request_logs(_random: Random, files: Files) -> list[str]:
    """Every request log."""
    return sorted(path for path in files if path.endswith("request.log"))


def a_server_log(random: Random, files: Files) -> list[str]:
    """One server log."""
    return [random.choice(logs_of(files, "server.log"))]
