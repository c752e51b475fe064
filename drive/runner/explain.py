"""Why a broker differs: which decisions the reference took at that step, and which known bugs make it do the same.

Rules of this file

1. A bug explains a difference when the reference with it reports what the broker reported, at every step of the path,
   in every field that the broker reports. One alone is looked for first, then two together.
2. Bugs are the switches of a profile (what a release of Kafka did), and the wrong rules and steps of drive.bugs.
3. What was decided is seen by putting an ear to each rule: the rules themselves are not touched.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from tidegauge.conformance.judging.rulebook import rulebook
from tidegauge.drive.broker.known_bugs import BUGS
from tidegauge.drive.broker.reference import possible, stepped
from tidegauge.drive.broker.state import WrongStep, opened, report
from tidegauge.drive.runner.player import Difference, differences, expected_of, given
from tidegauge.impl import rules as rules_
from tidegauge.impl.profiles import Profile, Rules
from tidegauge.impl.releases import SINCE


class Suspect(NamedTuple):
    """A known bug: a switch with another value, a wrong rule or a wrong step."""

    name: str
    says: str
    profile: dict[str, Any]
    rules: dict[str, Callable[..., Any]]
    wrong: WrongStep | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.says}"


class Decision(NamedTuple):
    """A rule that the reference applied, with what it was given and what it said; `ids` are rows of the catalog about it."""

    rule: str
    arguments: tuple[Any, ...]
    result: Any
    kafka: str
    ids: tuple[str, ...]


def suspects(profile: Profile) -> Iterator[Suspect]:
    """Every known bug that a broker of this generation should not have."""
    for name, since in SINCE.items():
        now = getattr(profile, name)
        for value in dict.fromkeys(value for _, value in since):
            if value != now:
                yield Suspect(f"{name}={_word(value)}", _releases(since, value), {name: value}, {})
        if isinstance(now, bool) and not any(value != now for _, value in since):
            yield Suspect(f"{name}={_word(not now)}", "as no release did", {name: not now}, {})
    for bug in BUGS.values():
        if not bug.switches:
            yield Suspect(bug.name, bug.says, {}, _changed(bug.rules), bug.wrong)


def _changed(rules: Rules) -> dict[str, Callable[..., Any]]:
    right = Rules()
    return {name: rule for name, rule in rules._asdict().items() if rule is not getattr(right, name)}


def _word(value: bool | str) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else value


def _releases(since: tuple[tuple[tuple[int, ...], bool | str], ...], value: bool | str) -> str:
    spans = []
    for at, (first, had) in enumerate(since):
        if had == value:
            until = since[at + 1][0] if at + 1 < len(since) else None
            begins = f"from {'.'.join(map(str, first))} on" if first != (0,) else ""
            ends = f"before {'.'.join(map(str, until))}" if until else ""
            spans.append(" ".join(filter(None, (begins, ends))))
    return f"as Kafka did {', and '.join(spans)}"


def explanations(
    found: Difference, profile: Profile, reported: frozenset[str], *, pairs: bool = True
) -> list[tuple[Suspect, ...]]:
    """The known bugs that do the same: those that do alone, else pairs unless those are not asked for."""
    known = list(suspects(profile))
    each: list[tuple[Suspect, ...]] = [(suspect,) for suspect in known]
    alone = [bugs for bugs in each if _does_the_same(found, profile, bugs, reported)]
    if alone or not pairs:
        return alone
    two = combinations(known, 2)
    return [pair for pair in two if _fit(*pair) and _does_the_same(found, profile, pair, reported)]


def explained_by(
    found: list[tuple[Suspect, ...]], alike: Sequence[Difference], profile: Profile, reported: frozenset[str]
) -> list[tuple[Suspect, ...]]:
    """Of the bugs that explain one path those that explain most of its kind."""
    if len(found) < 2:
        return found
    explain = [sum(_does_the_same(one, profile, bugs, reported) for one in alike) for bugs in found]
    return [bugs for bugs, many in zip(found, explain, strict=True) if many == max(explain)]


def _fit(one: Suspect, other: Suspect) -> bool:
    if one.wrong is not None and other.wrong is not None:
        return False
    return not (one.profile.keys() & other.profile.keys() or one.rules.keys() & other.rules.keys())


def _does_the_same(found: Difference, profile: Profile, bugs: tuple[Suspect, ...], reported: frozenset[str]) -> bool:
    switches = {name: value for bug in bugs for name, value in bug.profile.items()}
    rules = {name: rule for bug in bugs for name, rule in bug.rules.items()}
    wrong = next((bug.wrong for bug in bugs if bug.wrong is not None), None)
    right = opened(found.case.opening, profile)
    held = opened(found.case.opening, profile.switched(switches), Rules()._replace(**rules), wrong)
    seen = report(held)
    for at, taken in enumerate(found.case.path[: found.at], start=1):
        held, seen = given(held, taken)
        if at < found.at:
            right, expected = expected_of(right, taken)
            if differences(expected, seen, reported):
                return False
    return not differences(seen, found.seen, reported)


def decisions(found: Difference, profile: Profile) -> list[Decision]:
    """What the reference decided at the step that differs."""
    heard: list[Decision] = []
    held = opened(found.case.opening, profile, _overheard(heard))
    for taken in found.case.path[: found.at]:
        heard.clear()
        if possible(held, taken):
            held, *_ = stepped(held, taken)
    return heard


def _overheard(heard: list[Decision]) -> Rules:
    def listening(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        ids = tuple(row.id for row in rulebook().values() if row.impl == f"impl.rules:{name}")
        kafka = ", ".join(re.findall(r"[A-Z]\w+#\w+", inspect.getdoc(rule) or ""))

        def applied(*arguments: Any) -> Any:
            result = rule(*arguments)
            heard.append(Decision(name, arguments, result, kafka, ids))
            return result

        return applied

    return Rules(**{name: listening(name, getattr(rules_, name)) for name in Rules._fields})
