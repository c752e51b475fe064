"""The files of a capture as lines, and the choice of some of them: those of a node, of the brokers, of a logger."""

import re
from collections.abc import Callable, Sequence
from random import Random

Files = dict[str, list[str]]
"""The text logs of a capture as lines, by path (`n1/server.log`)."""

Choice = Callable[[Random, Files], Sequence[str]]


_AT_INFO = re.compile(r"\[[^\]]*\] (?:INFO|WARN|ERROR|FATAL) |(?!\[\d{4}-)")


def is_at_info(line: str) -> bool:
    """Return whether a logger at INFO writes the line, or it goes on with another."""
    return _AT_INFO.match(line) is not None


def node(path: str) -> str:
    """Return the folder of a file."""
    return path.partition("/")[0]


def brokers(files: Files) -> list[str]:
    """Return the folders of nodes with replicas: their requests are fetches, or their lines name a log."""
    return sorted({node(path) for path, lines in files.items() if any("UnifiedLog partition=" in line for line in lines)})


def controllers(files: Files) -> list[str]:
    """Return the folders of nodes without replicas."""
    return sorted({node(path) for path in files} - set(brokers(files)))


def logs_of(files: Files, name: str = ".log", least: int = 20) -> list[str]:
    """Return the files called `name` that have `least` lines to lose from; the longest one where none is that long."""
    fitting = sorted(path for path, lines in files.items() if path.endswith(name) and len(lines) >= least)
    return fitting or [max(sorted(files), key=lambda path: len(files[path]))]


def everything(_random: Random, files: Files) -> list[str]:
    """Choose every file."""
    return sorted(files)


def a_node(random: Random, files: Files) -> list[str]:
    """Choose the files of one node."""
    who = random.choice(sorted({node(path) for path in files}))
    return sorted(path for path in files if node(path) == who)


def a_broker(random: Random, files: Files) -> list[str]:
    """Choose the files of one node with replicas."""
    who = random.choice(brokers(files) or [node(path) for path in files])
    return sorted(path for path in files if node(path) == who)


def but_one_broker(random: Random, files: Files) -> list[str]:
    """Choose the files of all nodes but one with replicas."""
    who = random.choice(brokers(files) or [node(path) for path in files])
    return sorted(path for path in files if node(path) != who)


def the_controller(_random: Random, files: Files) -> list[str]:
    """Choose the files of the nodes without replicas."""
    return sorted(path for path in files if node(path) in controllers(files))


def the_brokers(_random: Random, files: Files) -> list[str]:
    """Choose the files of the nodes with replicas."""
    return sorted(path for path in files if node(path) in brokers(files))


def a_request_log(random: Random, files: Files) -> list[str]:
    """Choose one request log."""
    return [random.choice(logs_of(files, "request.log"))]


def request_logs(_random: Random, files: Files) -> list[str]:
    """Choose every request log."""
    return sorted(path for path in files if path.endswith("request.log"))


def a_server_log(random: Random, files: Files) -> list[str]:
    """Choose one server log."""
    return [random.choice(logs_of(files, "server.log"))]
