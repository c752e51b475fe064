"""What the contract of a broker and that of a controller have in common: steps, reports, and the cases that nodes are taken
through.

A node is whatever plays cases: a process of Kafka, a driven program, a transcript, the reference itself. A case is an
opening (how the partition or the cluster is set up) and a path (the steps in order). After the opening and after each step a
node reports its state as values by field.
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
"""Gets (case, step, report) after each step, both numbered, step 0 is the opening; returns whether the case goes on.

After the last step of a case it returns False at the latest.
"""


class Capabilities(NamedTuple):
    """The name of a node, the steps and extras that it can be given (`can`), and the fields that it reports."""

    name: str
    can: frozenset[str]
    reports: frozenset[str]


CaseT_contra = TypeVar("CaseT_contra", bound=DriveCase[Any], contravariant=True)


class CaseError(TidegaugeError):
    """A node cannot play a case to its end; `number` is the position of that case among those given to `Node.play`."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


@contextmanager
def errors_of_case(number: int) -> Iterator[None]:
    """Raise a TidegaugeError or an OSError of the block as a CaseError that names the case by its number."""
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
        """Take every case through its steps in order; call `watch` with the report after its opening and after each step.

        A case ends when `watch` returns False. The player does not pull reports: the node calls back, because it decides
        itself which cases are under way at a time. Many of them can then wait for the same thing together.
        """


# ---------------------------------------------------------------------------------------------------------------------
# Values that come from somewhere else

LARGEST = 2**53
"""Integers from here on are not all exact in a reader of JSON that has floats only, such as JavaScript's."""


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer that every JSON reader reads exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST


def is_integers(value: Any, length: int | None = None) -> bool:
    """Return whether a value is a list or tuple of integers, with exactly `length` of them unless that is None."""
    return isinstance(value, tuple | list) and (length is None or len(value) == length) and all(map(is_integer, value))


def is_call(value: Any, steps: Mapping[str, Any]) -> bool:
    """Return whether a value has the form of a step: a tuple of a step's name and as many arguments as that step `takes`.

    `steps` has the kinds of steps by name. The arguments themselves are not checked.
    """
    names_step = isinstance(value, tuple) and bool(value) and isinstance(value[0], str) and value[0] in steps
    return names_step and len(value) == 1 + len(steps[value[0]].takes)


def frozen(value: Any) -> Any:
    """Return a JSON value with all its lists, also those inside lists, as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value
