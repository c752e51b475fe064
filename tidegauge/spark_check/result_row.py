"""A row of results: what a worker makes of one row group of a Parquet file.

The schemas of Arrow and of Spark's SQL are made from the fields of ResultRow and their type hints; the names are columns
that users read. A *tally* is the counts of one rule's checks. A *situation* is what an event was about, for a report on
coverage.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from tidegauge.conformance.checking.situations import Seen, Situation
from tidegauge.conformance.engine.judge import RuleTally
from tidegauge.traces.problems import Problem

Int32 = Annotated[int, pa.int32()]


@dataclass(frozen=True)
class TallyRow:
    """The counts of one rule's checks."""

    rule: str
    held: int
    failed: int
    undecided: int
    failed_traces: int
    missing: tuple[str, ...]
    """fields that would have decided the undecided checks"""

    @classmethod
    def from_tally(cls, rule: str, tally: RuleTally) -> "TallyRow":
        """Return a rule's tally as a row. A row group has no lost lines, so nothing failed after one."""
        return cls(rule, tally.held, tally.failed, tally.undecided, tally.failed_traces, tuple(tally.missing))

    def tally(self) -> RuleTally:
        """Return the row as a tally again, the reverse of `from_tally`."""
        return RuleTally(self.held, self.failed, self.undecided, self.missing, self.failed_traces)


@dataclass(frozen=True)
class FailureRow:
    """A failed check. `trace` counts from the start of the file, `event` from the start of its trace."""

    trace: int
    event: int
    rule: str
    compared: str
    expected: int | None
    actual: int | None


@dataclass(frozen=True)
class ProblemRow:
    """Why a row group could not be judged."""

    path: str
    expected: str
    seen: str
    do: str


@dataclass(frozen=True)
class SituationRow:
    """A situation that events were in (conformance.checking.situations), how often, and where first."""

    action: str
    outcomes: tuple[str, ...]
    times: int
    first: str


@dataclass(frozen=True)
class ResultRow:
    """What a worker makes of one row group: it is judged, or malformed, and then there is a problem.

    `fingerprint` stands for the file's version and the judge; `failures` are the first ones; `lost_disks` are node ids;
    `situations` are there if they were asked for.
    """

    path: str
    fingerprint: str
    row_group: Int32
    events: int
    traces: int
    malformed_events: int
    malformed_traces: int
    problem: ProblemRow | None
    lost_disks: tuple[Int32, ...]
    tallies: tuple[TallyRow, ...]
    failures: tuple[FailureRow, ...]
    situations: tuple[SituationRow, ...]
    seconds: float
    worker: Int32
    peak_bytes: int

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ResultRow":
        """Return a row that was read back from Arrow or from Spark, whose structs are dicts and whose lists are lists.

        Here structs are dataclasses and lists are tuples.
        """
        problem = data["problem"]
        nested = {
            "problem": None if problem is None else ProblemRow(**problem),
            "lost_disks": tuple(data["lost_disks"]),
            "tallies": tuple(TallyRow(**{**tally, "missing": tuple(tally["missing"])}) for tally in data["tallies"]),
            "failures": tuple(FailureRow(**failure) for failure in data["failures"]),
            "situations": tuple(SituationRow(**{**at, "outcomes": tuple(at["outcomes"])}) for at in data["situations"]),
        }
        return cls(**{**data, **nested})

    @property
    def seen(self) -> dict[Situation, Seen]:
        """The situations, in the form in which a check without Spark counts them."""
        return {Situation(at.action, at.outcomes): Seen(at.times, at.first) for at in self.situations}

    @property
    def where(self) -> str:
        """The row group, as messages name it."""
        return f"{self.path}: row group {self.row_group}"

    def to_problem(self) -> Problem:
        """Return what was wrong with a malformed row group, as the report's problem; only for a row that has one.

        It is about no line, and costs all events of the row group.
        """
        assert self.problem is not None
        return Problem(line=None, lost=self.malformed_events, **asdict(self.problem))


def record_batch(rows: list[ResultRow]) -> pa.RecordBatch:
    """Return rows in the form of ARROW_SCHEMA."""
    return pa.RecordBatch.from_pylist([asdict(row) for row in rows], schema=ARROW_SCHEMA)


def _arrow_type(hint: Any) -> pa.DataType:
    """Return Arrow's type for a type hint: plain types, dataclasses, tuples, and unions with None."""
    plain = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    if hint in plain:
        return plain[hint]
    if is_dataclass(hint):
        return pa.struct(_arrow_fields(hint))
    arguments = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        # Every column of Arrow may be null, so `X | None` is X.
        (hint_of_values,) = (argument for argument in arguments if argument is not NoneType)
        return _arrow_type(hint_of_values)
    # Two hints are left: Annotated[int, type of Arrow], as Int32 is, and tuple[X, ...], a list of X.
    return arguments[1] if isinstance(arguments[1], pa.DataType) else pa.list_(_arrow_type(arguments[0]))


def _arrow_fields(row_class: Any) -> list[tuple[str, pa.DataType]]:
    """Return name and Arrow type of each field of a dataclass."""
    hints = get_type_hints(row_class, include_extras=True)
    return [(field.name, _arrow_type(hints[field.name])) for field in fields(row_class)]


def _sql_type(arrow: pa.DataType) -> str:
    """Return the name in Spark's SQL of a type that `_arrow_type` gives."""
    if pa.types.is_list(arrow):
        return f"array<{_sql_type(arrow.value_type)}>"
    if pa.types.is_struct(arrow):
        return f"struct<{', '.join(f'{field.name}: {_sql_type(field.type)}' for field in arrow)}>"
    return {"string": "string", "int32": "int", "int64": "bigint", "double": "double"}[str(arrow)]


ARROW_SCHEMA = pa.schema(_arrow_fields(ResultRow))
SQL_SCHEMA = ", ".join(f"{field.name} {_sql_type(field.type)}" for field in ARROW_SCHEMA)
