"""Why a rule about data is broken: what that means in a sentence, and the steps of the trace that led there.

Rules of this package

1. Every sentence states an event of the trace, or what the judge knew after it (history). What it did not know is called
   unknown or is not mentioned, and where the steps cannot be told apart there is no chain.
2. Causes are in the order of the trace, and each names the row of its event.
"""

from tidegauge.conformance.judging.because.causes import CausalStep, RootCause
from tidegauge.conformance.judging.because.history import History
from tidegauge.conformance.judging.because.logs import explain_contradicted_log
from tidegauge.conformance.judging.because.promises import explain_high_watermark
from tidegauge.conformance.judging.because.records import explain_differing_logs, explain_lost_records
from tidegauge.conformance.judging.judge import Failure

__all__ = ["CausalStep", "RootCause", "find_root_cause", "has_root_cause"]

DATA = ("DATA-", "HW-", "LOG-")


def has_root_cause(rule: str) -> bool:
    """Return whether this package looks for the causes of a rule's failures."""
    return rule.startswith(DATA)


def find_root_cause(past: History, failure: Failure, tp: str) -> RootCause | None:
    """Return what a failure means for the partition `tp`, and its causes; None where the trace does not show enough."""
    expected, actual = failure.expected, failure.actual
    if expected is None or actual is None:
        return None
    if failure.rule in ("DATA-01", "DATA-03"):
        return explain_lost_records(past, failure, actual, expected, tp)
    if failure.rule == "DATA-02":
        return explain_differing_logs(past, failure.row, actual, expected, tp)
    broker = past.broker(failure.row)
    # An event of the controller has no log and no high watermark that could be wrong.
    if broker is None:
        return None
    if failure.rule.startswith("HW-"):
        return explain_high_watermark(past, failure, broker, expected, actual)
    return explain_contradicted_log(past, failure, broker, expected, actual)
