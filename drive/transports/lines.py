"""The lines between the suite and a driven program, and whether what it wrote is what the contract says.

Rules of this file

1. One line of JSON each way: a handshake, then a line per step with the partition it is for, each answered with one line.
2. A line that is not what was agreed on is the program's fault: it is refused with what was expected, what was seen and
   where. Nothing is guessed. Fields that the contract does not know are left alone.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegauge.drive.broker.contract import (
    ACKS_ALL,
    BROKER,
    EXTRAS,
    IN_SESSION,
    MAY_WAIT,
    NEEDED,
    REPORTED,
    STEPS,
    VERSION,
    Opening,
    step_json,
)
from tidegauge.drive.contract import Capabilities, Report, Step, is_integer, is_integers
from tidegauge.impl.errors import TidegaugeError

SHOWN = 200
"""How much of a wrong line a message quotes."""


class DrivenProgramError(TidegaugeError):
    """The driven program itself is at fault: it died, hung, flooded, or wrote what the contract does not have."""


def hello() -> dict[str, Any]:
    """The first line a driven program reads."""
    return {"contract": VERSION, "steps": sorted(STEPS), "extras": sorted(EXTRAS), "reports": sorted(REPORTED)}


def json_line(value: Mapping[str, Any]) -> bytes:
    """An object as a line."""
    return _ENCODER.encode(value).encode() + b"\n"


def opening_line(partition: int, opening: Opening) -> bytes:
    """A new partition."""
    return json_line({"p": partition, "step": "open", "broker": BROKER, **opening._asdict()})


def step_line(partition: int, step: Step) -> bytes:
    """A step of a partition."""
    return json_line({"p": partition, **step_json(step)})


def closing_line(partition: int) -> bytes:
    """A partition that gets no more steps; nothing is answered."""
    return json_line({"p": partition, "step": "close"})


def parsed(line: bytes, where: str) -> dict[str, Any]:
    """A line as an object."""
    try:
        found = _DECODER.decode(line.decode())
    except (ValueError, RecursionError):
        raise blamed("a line of JSON", line, where) from None
    if not isinstance(found, dict):
        raise blamed("a JSON object", line, where)
    return found


def _no_number(word: str) -> None:
    raise ValueError(word)


_ENCODER, _DECODER = json.JSONEncoder(separators=(",", ":")), json.JSONDecoder(parse_constant=_no_number)


def blamed(expected: str, line: bytes, where: str) -> DrivenProgramError:
    """The error for a wrong line."""
    shown = line[:SHOWN].decode("utf-8", "backslashreplace").strip() + (" .." if len(line) > SHOWN else "")
    return DrivenProgramError(
        f"the driven program: expected {expected}; seen {shown!r} {where}; docs/drive.md has the lines"
    )


def capabilities_of(line: bytes, where: str) -> Capabilities:
    """What a driven program says it can do."""
    found = parsed(line, where)
    if found.get("contract") != VERSION or isinstance(found.get("contract"), bool):
        raise blamed(f'a handshake with "contract": {VERSION}', line, where)
    if not isinstance(found.get("name"), str):
        raise blamed('a handshake with a "name"', line, where)
    can = _words(found, "can", {*STEPS, *EXTRAS}, line, where)
    reports = _words(found, "reports", set(REPORTED), line, where)
    if not can >= NEEDED:
        raise blamed(f'"can" with at least {", ".join(sorted(NEEDED))}', line, where)
    if not reports:
        raise blamed(f'"reports" with at least one of {", ".join(REPORTED)}', line, where)
    if ACKS_ALL in can and "append" not in can:
        raise blamed(f'"append" in "can", because {ACKS_ALL} is there', line, where)
    return Capabilities(found["name"], can, reports)


def _words(found: Mapping[str, Any], field: str, known: set[str], line: bytes, where: str) -> frozenset[str]:
    words = found.get(field)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise blamed(f'a handshake with "{field}", a list of words', line, where)
    unknown = sorted(set(words) - known)
    if unknown:
        raise blamed(f'in "{field}" some of {", ".join(sorted(known))}, not {unknown[0][:SHOWN]!r}', line, where)
    return frozenset(words)


# ---------------------------------------------------------------------------------------------------------------------
# Reports


Check = Callable[[Any], bool]


def _tuple_of(length: int) -> Check:
    return lambda value: is_integers(value, length)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _object_of(**fields: Check) -> Check:
    return lambda value: (
        isinstance(value, dict) and all(name in value and check(value[name]) for name, check in fields.items())
    )


def _null_or(check: Check) -> Check:
    return lambda value: value is None or check(value)


_FETCH = _object_of(
    current_leader_epoch=is_integer, fetch_offset=is_integer, last_fetched_epoch=is_integer, log_start=is_integer
)
_EPOCH = _object_of(current_leader_epoch=is_integer, leader_epoch=is_integer)
_RESULT: Mapping[str, Check] = {
    "error": is_integer,
    "base": is_integer,
    "hw": is_integer,
    "log_start": is_integer,
    "records": _list_of(_tuple_of(3)),
    "diverging": _null_or(_tuple_of(2)),
    "leader_epoch": is_integer,
    "end_offset": is_integer,
    "offset": is_integer,
}


def _requests(value: Any) -> bool:
    return isinstance(value, dict) and all(
        peer.isascii() and peer.isdecimal() and (_FETCH(request) or _EPOCH(request)) for peer, request in value.items()
    )


def _fetched(value: Any) -> bool:
    return isinstance(value, dict) and all(
        peer.isascii() and peer.isdecimal() and (found is None or _is_result(found, STEPS["fetch"].result))
        for peer, found in value.items()
    )


def _is_result(value: Any, fields: Sequence[str]) -> bool:
    """Of a request that is refused only the error is looked at."""
    if not isinstance(value, dict) or not is_integer(value.get("error")):
        return False
    return value["error"] != 0 or all(field in value and _RESULT[field](value[field]) for field in fields)


_CHECKS: Mapping[str, tuple[Check, str]] = {
    "requests": (_requests, "an object of requests by peer"),
    "proposal": (
        _null_or(_object_of(isr=_list_of(is_integer), leader_epoch=is_integer, partition_epoch=is_integer)),
        "null, or isr, leader_epoch and partition_epoch",
    ),
    "produced": (_list_of(_tuple_of(2)), "a list of [base, error]"),
    "fetched": (_fetched, "an object of responses to fetches by peer"),
    "leo": (is_integer, "an integer"),
    "hw": (is_integer, "an integer"),
    "log_start": (is_integer, "an integer"),
    "ends": (_list_of(_tuple_of(2)), "a list of [epoch, end offset]"),
}


def report_of(found: dict[str, Any], step: Step | None, capabilities: Capabilities, line: bytes, where: str) -> Report:
    """A report, with every field that the program said it reports. `step` None: the opening."""
    if "unsupported" in found:
        raise blamed(f"a report of {step[0] if step else 'open'}, which the handshake promised", line, where)
    for field in capabilities.reports:
        if field not in found:
            raise blamed(f'a report with "{field}", which the handshake promised', line, where)
        if field == "result":
            _check_result(found[field], step, line, where)
            continue
        check, says = _CHECKS[field]
        if not check(found[field]):
            raise blamed(f'in "{field}" {says}', line, where)
    return found


def _check_result(value: Any, step: Step | None, line: bytes, where: str) -> None:
    fields = STEPS[step[0]].result if step else ()
    null = step is not None and (step[0] in IN_SESSION | MAY_WAIT or (step[0] == "append" and step[1] == -1))
    if value is None and (not fields or null):
        return
    if not fields:
        raise blamed(f'in "result" null, for {step[0] if step else "open"} is no request', line, where)
    if not isinstance(value, dict) or not is_integer(value.get("error")):
        raise blamed('in "result" an object with an "error"', line, where)
    if not _is_result(value, fields):
        raise blamed(f'in "result" {", ".join(fields)} as docs/drive.md has them', line, where)
