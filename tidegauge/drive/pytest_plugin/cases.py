"""The test cases of a broker: ten steps, scenarios, paths by graph and action, walks, rules; and which are expected to fail.

Rules of this file

1. The id of a case names its subject, not the number of its paths: it is the same tomorrow.
2. Paths are played once, however many cases look at them.
3. A rule fails where it decides a field that differs. A rule that no path applies is not exercised, which is no pass.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tidegauge.conformance.judge.rulebook import rulebook
from tidegauge.drive.broker.applied_rules import Count, counting, with_callees
from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import blamed, decisions, reference
from tidegauge.drive.broker.steps import action_of
from tidegauge.drive.contract import Capabilities, Node
from tidegauge.drive.paths.graphs import cover_of
from tidegauge.drive.paths.scenarios import scenario_cases
from tidegauge.drive.paths.selection import smoke_case
from tidegauge.drive.paths.short_paths import refusals, telling_paths
from tidegauge.drive.paths.unsafe_or_repaired import telling_cases
from tidegauge.drive.paths.walks import walk
from tidegauge.drive.runner.differences import Difference, PlayResult, by_kind
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.run import SAMPLE, failures_of
from tidegauge.impl.profiles import Profile

WALKS_PER_CASE = 60

RULE = "rule/"

NOT_OF_ONE_BROKER = ("CTRL", "DATA", "READ", "LIFE", "SEQ", "EPOCH-04", "ISR-04", "LOG-02")
"""Rules about the controller, about several replicas, about consumers, and about how traces are made."""


class Failed(NamedTuple):
    """Why a case fails. `exercised`: False for a rule that nothing applies."""

    text: str = ""
    exercised: bool = True


def path_cases(
    capabilities: Capabilities, profile: Profile, graphs: Sequence[str], walks: int, seed: int
) -> Mapping[str, Sequence[BrokerCase]]:
    """Return the paths by the id of their case.

    Those of a graph are grouped by the action of their last step, refusals by that of the step before, which is refused.
    """
    cases: defaultdict[str, list[BrokerCase]] = defaultdict(list)
    cases["smoke"].append(smoke_case(profile, capabilities))
    for scenario in scenario_cases(profile, capabilities):
        cases[f"scenario/{scenario.name}"].append(scenario.case)
    for case in telling_cases(profile, capabilities):
        cases["unsafe"].append(case)
    for name in graphs:
        for case in cover_of(name, profile, capabilities).cases:
            cases[f"graph/{name}/{action_of(case.path[-1])}"].append(case)
    for case in refusals(profile, capabilities):
        cases[f"refusal/{action_of(case.path[-2])}"].append(case)
    for suspect, case in telling_paths(profile, capabilities).by_suspect.items():
        cases[f"distinguishing/{suspect}"].append(case)
    for number in range(walks):
        first = number - number % WALKS_PER_CASE
        cases[f"walks/{seed}/{first}-{first + WALKS_PER_CASE - 1}"].append(walk(seed, number, profile, capabilities))
    return cases


def rule_cases() -> list[str]:
    """Return the ids of the rules that decide what a driven broker does."""
    rules = (rule for rule in rulebook().values() if not rule.id.startswith(NOT_OF_ONE_BROKER))
    return [f"{RULE}{rule.id}" for rule in rules if rule.impl.startswith("impl.rules:")]


@dataclass
class Suite:
    """A broker and its test cases."""

    node: Node[BrokerCase]
    profile: Profile
    paths: Mapping[str, Sequence[BrokerCase]]
    count: Count = field(default_factory=Counter)
    _played: dict[str, PlayResult[BrokerCase]] = field(default_factory=dict)
    _stories: dict[BrokerCase, str] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """The ids of all cases."""
        return [*self.paths, *rule_cases()]

    def check(self, case: str) -> Failed | None:
        """Check a case; return why it fails, None if it passes."""
        if case.startswith(RULE):
            return self._check_rule(case.removeprefix(RULE))
        differences = self._differences(case)
        if not differences:
            return None
        return Failed(self._story_of(differences))

    def _story_of(self, differences: Sequence[Difference[BrokerCase]]) -> str:
        """Return the text of some differences, each played again."""
        failures, not_again = failures_of(self.node, differences, reference(self.profile))
        texts = [failure.text for failure in failures]
        if not_again:
            texts.append(f"{not_again} differences did not reproduce on a fresh partition: the broker is non-deterministic")
        return "\n\n".join(texts)

    def _differences(self, case: str) -> Sequence[Difference[BrokerCase]]:
        if case not in self._played:
            expected = reference(self.profile, counting(self.count))
            self._played[case] = play(self.node, self.paths[case], expected)
        return self._played[case].differences

    def _check_rule(self, rule: str) -> Failed | None:
        """Return the failure of a rule: a difference that it decides, or that no path applies it; None if it holds."""
        failing = self._by_rule.get(rule)
        if failing is not None:
            # Many rules decide at one step: shrinking and explaining its difference once is enough.
            if failing.case not in self._stories:
                self._stories[failing.case] = self._story_of([failing])
            return Failed(self._stories[failing.case])
        # A rule of impl may be applied only through another one.
        applied = rulebook()[rule].impl.removeprefix("impl.rules:") in with_callees({name for name, _ in self.count})
        return None if applied else Failed(f"{rule}: no path applies it", exercised=False)

    @cached_property
    def _by_rule(self) -> Mapping[str, Difference[BrokerCase]]:
        """Return the shortest difference by each rule that decides a field of it."""
        differences = [difference for case in self.paths for difference in self._differences(case)]
        # Differences of one kind are alike: a few of the shortest say which rules decide there.
        samples = [
            difference
            for alike in by_kind(differences).values()
            for difference in sorted(alike, key=lambda difference: difference.at)[:SAMPLE]
        ]
        shortest: dict[str, Difference[BrokerCase]] = {}
        for difference in sorted(samples, key=lambda difference: difference.at):
            decide = {name for made in decisions(difference, self.profile) for name in made.ids}
            # A wrong step that no rule decides, such as an order of two, fails those that decide beside it.
            for rule in blamed(difference, self.profile) or decide:
                shortest.setdefault(rule, difference)
        return shortest
