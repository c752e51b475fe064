"""LOG-01, LOG-02: a log that is not what its events made it."""

from tidegauge.conformance.judging.because.causes import CausalStep, RootCause, name_of
from tidegauge.conformance.judging.because.history import History
from tidegauge.conformance.judging.judge import Failure
from tidegauge.conformance.judging.replay import ReplayedReplica

_WORDS = {"leo": "log end", "leo_before": "log end", "hw": "high watermark", "log_start": "log start"}


def explain_contradicted_log(past: History, failure: Failure, broker: int, expected: int, actual: int) -> RootCause | None:
    """Return the value that was observed, the one that the events made, and the last event that made it."""
    word = _WORDS.get(failure.compared)
    if word is None:
        return None
    name = name_of(past, broker)
    made = past.last(
        past.upto(failure.row - 1),
        lambda row: _value(past.after(row, broker), word) == expected != _value(past.before(row, broker), word),
    )
    causes = () if made is None else (CausalStep(f"{name}'s {word} became {expected:,} ({past.event(made).event}).", made),)
    here = CausalStep(f"{name} has the {word} {actual:,} ({past.event(failure.row).event}).", failure.row)
    return RootCause(f"{name} has the {word} {actual:,}, where its events made it {expected:,}.", (*causes, here))


def _value(replica: ReplayedReplica, word: str) -> int | None:
    return {"log end": replica.leo, "high watermark": replica.hw, "log start": replica.log_start}[word]
