"""The rules and the known bugs in words: read from catalog.toml, the one place where every sentence stands.

Rules of this file

1. A known bug is named only where the release that a source names has it. A source that names none, or one that is not in
   impl.releases, may be anybody's broker: every bug is named that looks the same.
2. Whether a cluster keeps eligible leader replicas its release does not say: the profile it is judged by does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from tidegauge.conformance.kernel.rule_ids import catalog
from tidegauge.impl.errors import UsageError
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile
from tidegauge.impl.releases import RELEASE, Release, parse_release, profile_named, profile_of_release
from tidegauge.traces.schema import Config


@dataclass(frozen=True)
class Rule:
    """A row of the catalog. `means` is what follows for users where it is broken, `bugs` what a failure looks like."""

    id: str
    level: str
    sentence: str
    means: str
    impl: str
    kafka: str
    bugs: tuple[str, ...]


@dataclass(frozen=True)
class Bug:
    """A known bug. `switches` are those of impl.profiles that a release with it has; without any, `fixed` decides.

    `right` is the generation that differs by it, `beyond` why no driven broker can show it.
    """

    name: str
    says: str
    fixed: tuple[Release, ...]
    switches: Mapping[str, bool | str]
    right: str
    beyond: str

    def is_in(self, release: Release, profile: Profile) -> bool:
        """Whether a release has it; `profile` is what that release did."""
        if self.switches:
            return all(getattr(profile, switch) == value for switch, value in self.switches.items())
        of_its_line = [fix for fix in self.fixed if fix[:2] == release[:2]]
        return not any(fix <= (*release, 0) for fix in of_its_line or self.fixed)  # 2.5 is 2.5.0


@cache
def rulebook() -> Mapping[str, Rule]:
    """Every rule by its id."""
    rows = catalog().get("rule", {})
    return MappingProxyType(
        {
            name: Rule(
                id=name,
                level=row["level"],
                sentence=row["sentence"],
                means=row.get("means", ""),
                impl=row.get("impl", ""),
                kafka=row.get("kafka", ""),
                bugs=tuple(row.get("bugs", ())),
            )
            for name, row in rows.items()
        }
    )


@dataclass(frozen=True)
class Action:
    """A step of the protocol, as the catalog has it."""

    name: str
    sentence: str
    kafka: str


@cache
def actions() -> Mapping[str, Action]:
    """Every action by its name."""
    rows = catalog().get("action", {})
    return MappingProxyType({name: Action(name, row["sentence"], row.get("kafka", "")) for name, row in rows.items()})


@cache
def known_bugs() -> Mapping[str, Bug]:
    """Every bug of the catalog by its name."""
    return MappingProxyType({name: _bug(name, row) for name, row in catalog().get("bug", {}).items()})


def _bug(name: str, row: Mapping[str, Any]) -> Bug:
    fixed = str(row.get("fixed", ""))
    releases = [word for word in (fixed or row.get("gone", "")).split(", ") if word and "switch" not in row]
    says = f"{row['says']} Fixed in {fixed}." if fixed else str(row["says"])
    return Bug(
        name,
        says,
        tuple(parse_release(word) for word in releases),
        row.get("switch", {}),
        row.get("right", FETCH_TRUNCATION.name),
        row.get("beyond", ""),
    )


def looks_like(rule: Rule, config: Config) -> tuple[Bug, ...]:
    """The known bugs that a failure of `rule` looks like, as far as the releases that the source names have them."""
    bugs = tuple(known_bugs()[name] for name in rule.bugs)
    try:
        releases = [
            (parse_release(name), profile_of_release(name)._replace(elr=profile_named(config.profile).elr))
            for name in releases_of(config)
        ]
    except UsageError:
        return bugs
    return tuple(bug for bug in bugs if not releases or any(bug.is_in(*release) for release in releases))


def releases_of(config: Config) -> tuple[str, ...]:
    """The releases of Kafka that a config names: the one it is judged by, or those that its source tells."""
    if config.profile.startswith(RELEASE):
        return (config.profile.removeprefix(RELEASE),)
    return tuple(word for word in str(config.extra.get("release", "")).split(", ") if word)


def rules_table() -> str:
    """The rules as the table of docs/judge.md."""
    head = ("| rule | level | what it says | Kafka | looks like |", "|---|---|---|---|---|")
    rows = (f"| {r.id} | {r.level} | {r.sentence} | `{r.kafka}` | {', '.join(r.bugs)} |" for r in rulebook().values())
    return "\n".join((*head, *rows))
