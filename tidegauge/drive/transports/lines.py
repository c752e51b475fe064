"""The lines between the driver and a driven program, and the check that they keep to the contract.

The driver writes steps, the program writes reports; a report is a JSON object with a value per field. In this file `line` is
a line of the program as it came, and `where` says where it stands in its output; both are for messages.

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
    """Return the first line for a driven program: the contract's version, and all steps, extras and fields it has."""
    return {"contract": VERSION, "steps": sorted(STEPS), "extras": sorted(EXTRAS), "reports": sorted(REPORTED)}


def json_line(value: Mapping[str, Any]) -> bytes:
    """Encode an object as a line."""
    return _ENCODER.encode(value).encode() + b"\n"


def opening_line(partition: int, opening: Opening) -> bytes:
    """Return the line that opens a partition, whose number `partition` all of its lines have."""
    return json_line({"p": partition, "step": "open", "broker": BROKER, **opening._asdict()})


def step_line(partition: int, step: Step) -> bytes:
    """Return the line of a step."""
    return json_line({"p": partition, **step_json(step)})


def shown_step(partition: int, step: Step | None) -> str:
    """Return the line of a step as a message shows it; None stands for the opening."""
    return step_line(partition, step).decode().strip() if step else f"the opening of partition {partition}"


def closing_line(partition: int) -> bytes:
    """Return the line after which a partition gets no more steps; it is not answered."""
    return json_line({"p": partition, "step": "close"})


def parse_line(line: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object in a line. Raises DrivenProgramError for anything else."""
    try:
        value = _DECODER.decode(line.decode())
    except (ValueError, RecursionError):
        raise blame("a line of JSON", line, where) from None
    if not isinstance(value, dict):
        raise blame("a JSON object", line, where)
    return value


def _refuse_constant(word: str) -> None:
    """Refuse NaN and Infinity, which Python's json reads and JSON does not have. Raises ValueError."""
    raise ValueError(word)


_ENCODER, _DECODER = json.JSONEncoder(separators=(",", ":")), json.JSONDecoder(parse_constant=_refuse_constant)


def blame(expected: str, line: bytes, where: str) -> DrivenProgramError:
    """Return the error for a wrong line: what was expected, and the line."""
    shown = line[:BYTES_SHOWN].decode("utf-8", "backslashreplace").strip() + (" .." if len(line) > BYTES_SHOWN else "")
    return DrivenProgramError(
        f"the driven program: expected {expected}; seen {shown!r} {where}; `tidegauge drive --json-schema` has the lines"
    )


def parse_handshake(line: bytes, where: str) -> Capabilities:
    """Return the capabilities in the handshake of a driven program. Raises DrivenProgramError."""
    handshake = parse_line(line, where)
    # JSON's true is Python's True, which equals 1.
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
    # The name begins a line of the report. With a colon or a number sign that line could be a command to a CI server.
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
"""Returns whether a value of a report has the right form."""


def _tuple_of(length: int) -> ValueCheck:
    """Return a check for a list of so many integers."""
    return lambda value: is_integers(value, length)


def _list_of(check: ValueCheck) -> ValueCheck:
    """Return a check for a list whose values all pass `check`."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def _object_of(**fields: ValueCheck) -> ValueCheck:
    """Return a check for an object that has these fields, each passing its check; it may have others."""
    return lambda value: (
        isinstance(value, dict) and all(name in value and check(value[name]) for name, check in fields.items())
    )


def _null_or(check: ValueCheck) -> ValueCheck:
    """Return a check for null, or a value that passes `check`."""
    return lambda value: value is None or check(value)


_FETCH = _object_of(
    current_leader_epoch=is_integer, fetch_offset=is_integer, last_fetched_epoch=is_integer, log_start=is_integer
)
_EPOCH_REQUEST = _object_of(current_leader_epoch=is_integer, leader_epoch=is_integer)
_RESULT: Mapping[str, tuple[ValueCheck, str]] = {
    **dict.fromkeys(
        ("error", "base", "hw", "log_start", "leader_epoch", "end_offset", "offset"), (is_integer, "an integer")
    ),
    "records": (_list_of(_tuple_of(3)), "a list of [base offset, last offset, leader epoch]"),
    "diverging": (_null_or(_tuple_of(2)), "null, or [epoch, end offset]"),
}
"""By field of a result, its check, and its form in words."""


def _are_requests(value: Any) -> bool:
    """Return whether a value is an object of requests by peer: fetches, or OffsetsForLeaderEpoch requests.

    The keys of JSON are strings: a peer is a number in ASCII digits.
    """
    return isinstance(value, dict) and all(
        peer.isascii() and peer.isdecimal() and (_FETCH(request) or _EPOCH_REQUEST(request))
        for peer, request in value.items()
    )


def _are_fetch_results(value: Any) -> bool:
    """Return whether a value is an object of results of fetches by peer.

    A result is null where the response in a session (KIP-227) does not name the partition.
    """
    return isinstance(value, dict) and all(
        peer.isascii() and peer.isdecimal() and (result is None or _is_result(result, STEPS["fetch"].result))
        for peer, result in value.items()
    )


def _is_result(value: Any, fields: Sequence[str]) -> bool:
    """Return whether a value is the result of a request with these fields."""
    return isinstance(value, dict) and is_integer(value.get("error")) and not _wrong_field(value, fields)


def _wrong_field(result: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return the first of `fields` that a result lacks or that is wrong, with its form in words; empty if all are right."""
    # Of a refused request only the error means something.
    for field in () if result["error"] != 0 else fields:
        check, form = _RESULT[field]
        if field not in result or not check(result[field]):
            return f'"{field}", {form}'
    return ""


_CHECKS: Mapping[str, tuple[ValueCheck, str]] = {
    "requests": (_are_requests, "an object of requests by peer"),
    "proposal": (
        _null_or(_object_of(isr=_list_of(is_integer), leader_epoch=is_integer, partition_epoch=is_integer)),
        "null, or isr, leader_epoch and partition_epoch",
    ),
    "produced": (_list_of(_tuple_of(2)), "a list of [base, error]"),
    "fetched": (_are_fetch_results, "an object of responses to fetches by peer"),
    "leo": (is_integer, "an integer"),
    "hw": (is_integer, "an integer"),
    "log_start": (is_integer, "an integer"),
    "ends": (_list_of(_tuple_of(2)), "a list of [epoch, end offset]"),
}
"""By field of a report, its check, and its form in words. `result` depends on the step: `_check_result`."""


def parse_report(fields: dict[str, Any], step: Step | None, capabilities: Capabilities, line: bytes, where: str) -> Report:
    """Return a report after checking that it has every field that the program's handshake promised, in the right form.

    `fields`: the JSON object in the line; `step`: the one that it reports, None for the opening. Raises DrivenProgramError.
    """
    if "unsupported" in fields:
        raise blame(f"a report of {step[0] if step else 'open'}, which the handshake promised", line, where)
    for field in capabilities.reports:
        if field not in fields:
            raise blame(f'a report with "{field}", which the handshake promised', line, where)
        if field == "result":
            _check_result(fields[field], step, line, where)
            continue
        check, form = _CHECKS[field]
        if not check(fields[field]):
            raise blame(f'in "{field}" {form}', line, where)
    return fields


def _check_result(value: Any, step: Step | None, line: bytes, where: str) -> None:
    """Check that the result in a report is one of its step, None for the opening. Raises DrivenProgramError."""
    fields = STEPS[step[0]].result if step else ()
    # A session may leave the partition out; a fetch may wait; the response to an append with acks=all (-1) is in `produced`.
    may_be_null = step is not None and (step[0] in IN_SESSION | MAY_WAIT or step == ("append", -1))
    # A step without fields of a result is no request.
    if value is None and (not fields or may_be_null):
        return
    if not fields:
        raise blame(f'in "result" null, for {step[0] if step else "open"} is no request', line, where)
    if not isinstance(value, dict) or not is_integer(value.get("error")):
        raise blame('in "result" an object with an "error"', line, where)
    if wrong_field := _wrong_field(value, fields):
        raise blame(f'in "result" {wrong_field}', line, where)
