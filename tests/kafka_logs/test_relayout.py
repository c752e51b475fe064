"""The same logs, laid out otherwise, get the same verdict for every rule."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tidegauge.conformance.checking.check import Report, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs.capture import shipped
from validation.metamorphic.relayouts import COARSER, RELAYOUTS, WITHOUT_CHECKPOINTS
from validation.metamorphic.tree import Tree, is_log, tree_of, write

HEALTHY, BROKEN, IN_MILLISECONDS = "4.2.0/k-epoch-jump-control", "4.2.0/k-epoch-jump", "3.4.1/b-kill-leader"
Relayout = Callable[[Tree], Tree]


@cache
def tree(name: str) -> Tree:
    return {path: content for path, content in tree_of(shipped()[name]).items() if "/" in path}


@cache
def as_it_is(name: str) -> dict[str, Verdict]:
    return verdicts(check([shipped()[name]]))


def verdicts(report: Report) -> dict[str, Verdict]:
    return {rule.rule.id: rule.verdict for rule in report.rules}


def judged(relayout: Relayout, name: str, to: Path) -> Report:
    return check([write(relayout(tree(name)), to)])


@pytest.mark.parametrize("relayout", sorted(RELAYOUTS))
@pytest.mark.parametrize("name", [HEALTHY, BROKEN])
def test_what_keeps_all_that_is_told(relayout: str, name: str, tmp_path: Path) -> None:
    """Rotated, split, prefixed, in another pattern, as JSON, zipped: every rule as before, and nothing lost."""
    report = judged(RELAYOUTS[relayout], name, tmp_path)
    assert verdicts(report) == as_it_is(name)
    assert report.lost == 0


@pytest.mark.parametrize(
    "relayout", ["rotated-log4j", "rotated-logrotate", "split-as-stock", "split-and-rotated", "one-console"]
)
def test_logs_in_milliseconds_that_are_split(relayout: str, tmp_path: Path) -> None:
    """3.x: most lines have the time of the one before, in whatever file it is."""
    assert verdicts(judged(RELAYOUTS[relayout], IN_MILLISECONDS, tmp_path)) == as_it_is(IN_MILLISECONDS)


@pytest.mark.parametrize("relayout", sorted(WITHOUT_CHECKPOINTS))
def test_all_nodes_in_one_folder(relayout: str, tmp_path: Path) -> None:
    """Told apart by what the lines say, or by the name; only what the disks said is missing (LOG-02)."""
    found = verdicts(judged(WITHOUT_CHECKPOINTS[relayout], HEALTHY, tmp_path))
    assert found | {"LOG-02": None} == as_it_is(HEALTHY) | {"LOG-02": None}


@pytest.mark.parametrize("relayout", sorted(COARSER))
@pytest.mark.parametrize("name", [HEALTHY, IN_MILLISECONDS])
def test_what_tells_less_fails_nothing(relayout: str, name: str, tmp_path: Path) -> None:
    """Kafka's default layout without threads, microseconds that are milliseconds: undecided at worst."""
    found = verdicts(judged(COARSER[relayout], name, tmp_path))
    assert [rule for rule, verdict in found.items() if verdict is Verdict.FAIL] == []


def test_the_suite_can_fail(tmp_path: Path) -> None:
    """Logs whose parts are read in another order than they were written are another story."""

    def reversed_lines(found: Tree) -> Tree:
        return {
            name: b"".join(reversed(content.splitlines(keepends=True))) if is_log(name) else content
            for name, content in found.items()
        }

    assert verdicts(judged(reversed_lines, HEALTHY, tmp_path)) != as_it_is(HEALTHY)
