"""The lines between the driver and a driven program, and the check that they keep to the contract.

Rules of this file

1. One line of JSON each way: a handshake, then a line per step with its partition, each answered with one line.
2. A line that breaks the contract is the program's fault: it is refused with what was expected, what was seen and where.
   Nothing is guessed. Fields that the contract does not have are ignored.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegauge.drive.broker.contract import ACKS_ALL, BROKER, EXTRAS, NEEDED, REPORTED, VERSION, Opening
from tidegauge.drive.broker.steps import IN_SESSION, MAY_WAIT, STEPS, step_json
from tidegauge.drive.contract import Capabilities, Report, Step, is_integer, is_integers
from tidegauge.util.errors import TidegaugeError
from tidegauge.util.untrusted_text import visible

BYTES_SHOWN = 200
"""Bytes of a wrong line that a message quotes."""


class DrivenProgramError(TidegaugeError):
    """The driven program itself is at fault: it ended, hung, flooded its output, or broke the contract."""


def hello() -> dict[str, Any]:
    """Return the first line for a driven program."""
    return {"contract": VERSION, "steps": sorted(STEPS), "extras": sorted(EXTRAS), "reports": sorted(REPORTED)}


def json_line(value: Mapping[str, Any]) -> bytes:
    """Encode an object as a line."""
    return _ENCODER.encode(value).encode() + b"\n"


def opening_line(partition: int, opening: Opening) -> bytes:
    """Return the line that opens a partition."""
    return json_line({"p": partition, "step": "open", "broker": BROKER, **opening._asdict()})


def step_line(partition: int, step: Step) -> bytes:
    """Return the line of a step."""
    return json_line({"p": partition, **step_json(step)})


def shown_step(partition: int, step: Step | None) -> str:
    """Return the line of a step as a message shows it; None is the opening."""
    return step_line(partition, step).decode().strip() if step else f"the opening of partition {partition}"


def closing_line(partition: int) -> bytes:
    """Return the line after which a partition gets no more steps; it is not answered."""
    return json_line({"p": partition, "step": "close"})


def parse_line(line: bytes, where: str) -> dict[str, Any]:
    """Decode a line, an object. Raises DrivenProgramError."""
    try:
        value = _DECODER.decode(line.decode())
    except (ValueError, RecursionError):
        raise blame("a line of JSON", line, where) from None
    if not isinstance(value, dict):
        raise blame("a JSON object", line, where)
    return value


def _refuse_constant(word: str) -> None:
    # Python's json reads NaN and Infinity, which JSON does not have.
    raise ValueError(word)


_ENCODER, _DECODER = json.JSONEncoder(separators=(",", ":")), json.JSONDecoder(parse_constant=_refuse_constant)


def blame(expected: str, line: bytes, where: str) -> DrivenProgramError:
    """Return the error for a wrong line."""
    shown = line[:BYTES_SHOWN].decode("utf-8", "backslashreplace").strip() + (" .." if len(line) > BYTES_SHOWN else "")
    return DrivenProgramError(
        f"the driven program: expected {expected}; seen {shown!r} {where}; `tidegauge drive --json-schema` has the lines"
    )


def parse_handshake(line: bytes, where: str) -> Capabilities:
    """Parse the handshake of a driven program. Raises DrivenProgramError."""
    handshake = parse_line(line, where)
    if handshake.get("contract") != VERSION or isinstance(handshake.get("contract"), bool):
        raise blame(f'a handshake with "contract": {VERSION}', line, where)
    if not isinstance(handshake.get("name"), str):
        raise blame('a handshake with a "name"', line, where)
    can = _words(handshake, "can", {*STEPS, *EXTRAS}, line, where)
    reports = _words(handshake, "reports", set(REPORTED), line, where)
    if not can >= NEEDED:
        raise blame(f'"can" with at least {", ".join(sorted(NEEDED))}', line, where)
    if not reports:
        raise blame(f'"reports" with at least one of {", ".join(REPORTED)}', line, where)
    if ACKS_ALL in can and "append" not in can:
        raise blame(f'"append" in "can", because {ACKS_ALL} is there', line, where)
    # It begins a line of the report: with a colon or a number sign it could be a command of a CI server.
    name = visible(handshake["name"])
    return Capabilities(name if name[:1].isalnum() else repr(name), can, reports)


def _words(handshake: Mapping[str, Any], field: str, allowed: set[str], line: bytes, where: str) -> frozenset[str]:
    """Return the words in a field of the handshake. Raises DrivenProgramError for one that is not `allowed`."""
    words = handshake.get(field)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise blame(f'a handshake with "{field}", a list of words', line, where)
    unknown = sorted(set(words) - allowed)
    if unknown:
        raise blame(f'in "{field}" some of {", ".join(sorted(allowed))}, not {unknown[0][:BYTES_SHOWN]!r}', line, where)
    return frozenset(words)


# ---------------------------------------------------------------------------------------------------------------------
# Reports


ValueCheck = Callable[[Any], bool]


def _tuple_of(length: int) -> ValueCheck:
    return lambda value: is_integers(value, length)


def _list_of(check: ValueCheck) -> ValueCheck:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _object_of(**fields: ValueCheck) -> ValueCheck:
    return lambda value: (
        isinstance(value, dict) and all(name in value and check(value[name]) for name, check in fields.items())
    )


def _null_or(check: ValueCheck) -> ValueCheck:
    return lambda value: value is None or check(value)


_FETCH = _object_of(
    current_leader_epoch=is_integer, fetch_offset=is_integer, last_fetched_epoch=is_integer, log_start=is_integer
)
_EPOCH = _object_of(current_leader_epoch=is_integer, leader_epoch=is_integer)
_RESULT: Mapping[str, tuple[ValueCheck, str]] = {
    **dict.fromkeys(
        ("error", "base", "hw", "log_start", "leader_epoch", "end_offset", "offset"), (is_integer, "an integer")
    ),
    "records": (_list_of(_tuple_of(3)), "a list of [base offset, last offset, leader epoch]"),
    "diverging": (_null_or(_tuple_of(2)), "null, or [epoch, end offset]"),
}


def _requests(value: Any) -> bool:
    return isinstance(value, dict) and all(
        peer.isascii() and peer.isdecimal() and (_FETCH(request) or _EPOCH(request)) for peer, request in value.items()
    )


def _fetched(value: Any) -> bool:
    return isinstance(value, dict) and all(
        peer.isascii() and peer.isdecimal() and (result is None or _is_result(result, STEPS["fetch"].result))
        for peer, result in value.items()
    )


def _is_result(value: Any, fields: Sequence[str]) -> bool:
    """Return whether a value is the result of a request with these fields."""
    return isinstance(value, dict) and is_integer(value.get("error")) and not _wrong_in_result(value, fields)


def _wrong_in_result(value: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return the first field of a result that lacks or is wrong, with what it should be; empty for none."""
    # The other fields of a refused request mean nothing.
    for field in () if value["error"] != 0 else fields:
        check, what = _RESULT[field]
        if field not in value or not check(value[field]):
            return f'"{field}", {what}'
    return ""


_CHECKS: Mapping[str, tuple[ValueCheck, str]] = {
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


def parse_report(fields: dict[str, Any], step: Step | None, capabilities: Capabilities, line: bytes, where: str) -> Report:
    """Check a report, which must have every field that the program's handshake promised. `step` None: the opening.

    Raises DrivenProgramError.
    """
    if "unsupported" in fields:
        raise blame(f"a report of {step[0] if step else 'open'}, which the handshake promised", line, where)
    for field in capabilities.reports:
        if field not in fields:
            raise blame(f'a report with "{field}", which the handshake promised', line, where)
        if field == "result":
            _check_result(fields[field], step, line, where)
            continue
        check, what = _CHECKS[field]
        if not check(fields[field]):
            raise blame(f'in "{field}" {what}', line, where)
    return fields


def _check_result(value: Any, step: Step | None, line: bytes, where: str) -> None:
    """Check the result in a report against the step. Raises DrivenProgramError."""
    fields = STEPS[step[0]].result if step else ()
    # A session may leave the partition out; a fetch may wait; an append with acks=all is answered in `produced`.
    may_be_null = step is not None and (step[0] in IN_SESSION | MAY_WAIT or step == ("append", -1))
    if value is None and (not fields or may_be_null):
        return
    if not fields:
        raise blame(f'in "result" null, for {step[0] if step else "open"} is no request', line, where)
    if not isinstance(value, dict) or not is_integer(value.get("error")):
        raise blame('in "result" an object with an "error"', line, where)
    if wrong := _wrong_in_result(value, fields):
        raise blame(f'in "result" {wrong}', line, where)
