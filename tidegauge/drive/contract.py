"""What the contract of a broker and that of a controller have in common: steps, reports, and the cases that nodes are taken
through.

A node is whatever plays cases: a process of Kafka, a driven program, a transcript, the reference itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from tidegauge.util.errors import TidegaugeError

Step = tuple[Any, ...]
"""A name and the step's arguments, such as ("fetch", 2, 0, 0, -1, True): those that its kind `takes` (broker/steps.py,
controller/steps.py), in that order.
"""

Path = tuple[Step, ...]
"""Steps, in the order in which they are given."""

Report = Mapping[str, Any]
"""What a node reports after a step: a value by field. A field that is absent is not known."""

OpeningT = TypeVar("OpeningT")


class DriveCase(NamedTuple, Generic[OpeningT]):
    """A path, and how the partition or the cluster is set up that it is played on; its name, if it has one."""

    opening: OpeningT
    path: Path
    name: str = ""


CaseT = TypeVar("CaseT", bound=DriveCase[Any])
"""A case of a broker, or of a controller."""

Watch = Callable[[int, int, Report], bool]
"""Gets (case, step, report) after each step, both numbered, step 0 is the opening; returns whether the case goes on."""


class Capabilities(NamedTuple):
    """The name of a node, the steps and extras that it can be given (`can`), and the fields that it reports."""

    name: str
    can: frozenset[str]
    reports: frozenset[str]


CaseT_contra = TypeVar("CaseT_contra", bound=DriveCase[Any], contravariant=True)


class CaseError(TidegaugeError):
    """A node cannot be taken on through a case, whose `number` it is of those that were to be played."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


@contextmanager
def errors_of_case(number: int) -> Iterator[None]:
    """Let what is raised here name the case."""
    try:
        yield
    except (TidegaugeError, OSError) as problem:
        raise CaseError(number, str(problem)) from problem


class Node(Protocol[CaseT_contra]):
    """A node to drive: it plays cases side by side or one after the other, each on a partition or a cluster of its own."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can be given, and what it reports."""

    def play(self, cases: Sequence[CaseT_contra], watch: Watch) -> None:
        """Give every step of every case, in the order of its steps, until `watch` says that the case is done.

        The node calls back, and the player does not pull reports: a node decides itself which cases are under way at a
        time, for many of them share what they wait for.
        """


# ---------------------------------------------------------------------------------------------------------------------
# Values that come from somewhere else

LARGEST = 2**53


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer that every JSON reader reads exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST


def is_integers(value: Any, length: int | None = None) -> bool:
    """Return whether a value is a list of integers, of that length if one is given."""
    return isinstance(value, tuple | list) and (length is None or len(value) == length) and all(map(is_integer, value))


def is_call(value: Any, steps: Mapping[str, Any]) -> bool:
    """Return whether a value is a tuple of the name of one of these steps and as many arguments as the step `takes`."""
    named = isinstance(value, tuple) and bool(value) and isinstance(value[0], str) and value[0] in steps
    return named and len(value) == 1 + len(steps[value[0]].takes)


def frozen(value: Any) -> Any:
    """Return a JSON value with its lists as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value
