"""The test cases of a broker: ten steps, scenarios, paths by graph and action, refusals, distinguishing paths, walks, rules.

A test case has an id, such as "graph/two/HandleFetch", and is a list of paths that the broker is taken through (BrokerCase
is one of these paths), or a rule of the catalog. It fails where the broker reports something else than the reference.

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
from tidegauge.drive.paths.short_paths import refusals_by_action, telling_paths
from tidegauge.drive.paths.unsafe_or_repaired import telling_cases
from tidegauge.drive.paths.walks import walk
from tidegauge.drive.runner.differences import Difference, PlayResult, by_kind
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.run import SAMPLE, failures_of
from tidegauge.impl.profiles import Profile

WALKS_PER_CASE = 60

RULE = "rule/"
"""The beginning of the ids of cases that are rules."""

NOT_OF_ONE_BROKER = ("CTRL", "DATA", "READ", "LIFE", "SEQ", "EPOCH-04", "ISR-04", "LOG-02")
"""Rules about the controller, about several replicas, about consumers, and about how traces are made."""


class CaseFailure(NamedTuple):
    """Why a test case does not pass. `exercised`: False for a rule that no path applies, so that it is skipped."""

    text: str = ""
    exercised: bool = True


def path_cases(
    capabilities: Capabilities, profile: Profile, graphs: Sequence[str], walks: int, seed: int
) -> Mapping[str, Sequence[BrokerCase]]:
    """Return the paths of each test case, by its id.

    `graphs`: names of graphs to cover; `walks`: how many random walks, drawn from `seed`. The paths of a graph are grouped
    by the action of their last step, those of refusals by that of the step that is refused.
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
    for action, refused in refusals_by_action(profile, capabilities).items():
        cases[f"refusal/{action}"].extend(refused)
    for suspect, case in telling_paths(profile, capabilities).by_suspect.items():
        cases[f"distinguishing/{suspect}"].append(case)
    for number in range(walks):
        # The number of the first walk in the same case.
        first = number - number % WALKS_PER_CASE
        cases[f"walks/{seed}/{first}-{first + WALKS_PER_CASE - 1}"].append(walk(seed, number, profile, capabilities))
    return cases


def rule_cases() -> list[str]:
    """Return the ids of the cases that are rules: those rules of `impl.rules` that decide what one broker does."""
    rules = (rule for rule in rulebook().values() if not rule.id.startswith(NOT_OF_ONE_BROKER))
    return [f"{RULE}{rule.id}" for rule in rules if rule.impl.startswith("impl.rules:")]


@dataclass
class Suite:
    """A broker and its test cases. `paths`: of each case that is no rule, by its id.

    `count`: how often each rule was applied on the paths that were played so far.
    """

    node: Node[BrokerCase]
    profile: Profile
    paths: Mapping[str, Sequence[BrokerCase]]
    count: Count = field(default_factory=Counter)
    _played: dict[str, PlayResult[BrokerCase]] = field(default_factory=dict)
    _stories: dict[BrokerCase, str] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """The ids of all cases, rules last."""
        return [*self.paths, *rule_cases()]

    def check(self, case: str) -> CaseFailure | None:
        """Check the case with an id: play its paths unless that was done; return why it does not pass, None if it does."""
        if case.startswith(RULE):
            return self._check_rule(case.removeprefix(RULE))
        differences = self._differences(case)
        if not differences:
            return None
        return CaseFailure(self._story_of(differences))

    def _story_of(self, differences: Sequence[Difference[BrokerCase]]) -> str:
        """Return the text of some differences, after playing their paths again and shrinking them."""
        failures, not_reproduced = failures_of(self.node, differences, reference(self.profile))
        texts = [failure.text for failure in failures]
        if not_reproduced:
            problem = f"{not_reproduced} differences did not reproduce on a fresh partition"
            texts.append(f"{problem}: the broker is non-deterministic")
        return "\n\n".join(texts)

    def _differences(self, case: str) -> Sequence[Difference[BrokerCase]]:
        """Return the differences on the paths of a case, which are played once (rule 2)."""
        if case not in self._played:
            expected = reference(self.profile, counting(self.count))
            self._played[case] = play(self.node, self.paths[case], expected)
        return self._played[case].differences

    def _check_rule(self, rule: str) -> CaseFailure | None:
        """Return the failure of a rule: a difference that it decides, or that no path applies it; None if it holds."""
        difference = self._by_rule.get(rule)
        if difference is not None:
            # Several rules may decide the same difference: shrinking and explaining it once is enough.
            if difference.case not in self._stories:
                self._stories[difference.case] = self._story_of([difference])
            return CaseFailure(self._stories[difference.case])
        # A rule of impl may be applied only through another one, and then is not counted itself.
        applied = rulebook()[rule].impl.removeprefix("impl.rules:") in with_callees({name for name, _ in self.count})
        return None if applied else CaseFailure(f"{rule}: no path applies it", exercised=False)

    @cached_property
    def _by_rule(self) -> Mapping[str, Difference[BrokerCase]]:
        """The shortest difference for each rule that decides one, by the rule's id. Plays the paths of all cases."""
        differences = [difference for case in self.paths for difference in self._differences(case)]
        # Differences of one kind are alike: a few of the shortest show which rules decide there (`at` is a step's number).
        samples = [
            difference
            for alike in by_kind(differences).values()
            for difference in sorted(alike, key=lambda difference: difference.at)[:SAMPLE]
        ]
        shortest: dict[str, Difference[BrokerCase]] = {}
        for difference in sorted(samples, key=lambda difference: difference.at):
            deciding_rules = {rule for decision in decisions(difference, self.profile) for rule in decision.ids}
            # Where no rule is to blame, as for two actions in the wrong order, all rules that decide at that step fail.
            for rule in blamed(difference, self.profile) or deciding_rules:
                shortest.setdefault(rule, difference)
        return shortest
