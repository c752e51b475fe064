"""The rules and the known bugs in words, read from catalog.toml: the one place that has their sentences.

Rules of this file

1. A failure is said to look like a known bug only if the release that its source names has the bug. A source without a
   release, or with one that is not in impl.releases, may be of any broker: every bug that looks the same is named.
2. The profile of a config says whether a cluster keeps eligible leader replicas; its release does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from tidegauge.conformance.judge.fields import catalog
from tidegauge.impl.profiles import CHANGED, FETCH_TRUNCATION, WITHOUT, Profile
from tidegauge.impl.releases import RELEASE, Release, parse_release, profile_names, profile_of_release, profiles_named
from tidegauge.traces.schema import Config
from tidegauge.util.errors import UsageError


@dataclass(frozen=True)
class Rule:
    """A row of the catalog. `means` is what a failure means for users, `bugs` the known bugs that it may look like.

    `impl` is the function of this project, and `kafka` the method of Kafka, that does what the rule says.
    """

    id: str
    level: str
    sentence: str
    means: str
    impl: str
    kafka: str
    bugs: tuple[str, ...]


@dataclass(frozen=True)
class Bug:
    """A known bug. A release has it if its profile has the `switches` of impl.profiles; without any, `fixed` decides.

    `says` is its sentence, `right` is the generation that differs by the bug only, `beyond` the reason why no driven broker
    can show it.
    """

    name: str
    says: str
    fixed: tuple[Release, ...]
    switches: Mapping[str, bool | str]
    right: str
    beyond: str

    def is_in(self, release: Release, profile: Profile) -> bool:
        """Return whether a release has the bug; `profile` is the profile of that release."""
        if self.switches:
            return all(getattr(profile, switch) == value for switch, value in self.switches.items())
        # A bug fixed in 2.4.1 and 2.5.0 is in 2.4.0 and not in 2.4.1: the fix of a release's own line decides, if any.
        own_line = [fix for fix in self.fixed if fix[:2] == release[:2]]
        # 2.5 is 2.5.0.
        return not any(fix <= (*release, 0) for fix in own_line or self.fixed)


@cache
def rulebook() -> Mapping[str, Rule]:
    """Return every rule of the catalog by its id."""
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
    """Return every action by its name."""
    rows = catalog().get("action", {})
    return MappingProxyType({name: Action(name, row["sentence"], row.get("kafka", "")) for name, row in rows.items()})


@cache
def known_bugs() -> Mapping[str, Bug]:
    """Return every bug of the catalog by its name."""
    return MappingProxyType({name: _bug(name, row) for name, row in catalog().get("bug", {}).items()})


def _bug(name: str, row: Mapping[str, Any]) -> Bug:
    """Return a known bug from its row of catalog.toml.

    `fixed` of the row names the releases with a fix, `gone`, where no release is a fix, those without the bug; `switch` the
    switches of a profile that has the bug.
    """
    fixed = str(row.get("fixed", ""))
    # Whether a release has a bug with a switch, its profile says (Bug.is_in), not the releases with a fix.
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
    """Return the known bugs that a failure of `rule` may come from (rule 1): those that a release of the source has."""
    bugs = tuple(known_bugs()[name] for name in rule.bugs)
    try:
        # Each release with its profile. Whether the cluster keeps eligible leader replicas, the config's says (rule 2).
        elr = profiles_named(config.profile, config.nodes).controller.elr
        releases = [(parse_release(name), profile_of_release(name)._replace(elr=elr)) for name in releases_of(config)]
    # A profile or a release that is not known here rules out no bug.
    except UsageError:
        return bugs
    return tuple(bug for bug in bugs if not releases or any(bug.is_in(*release) for release in releases))


def releases_of(config: Config) -> tuple[str, ...]:
    """Return the releases of Kafka that a config names: those of its profile, or else those of its source."""
    # The name of a profile may be that of a release, then what was changed, or which bugs were repaired, behind it.
    releases = [name.removeprefix(RELEASE) for name in profile_names(config.profile) if name.startswith(RELEASE)]
    if releases:
        return tuple(dict.fromkeys(name.partition(WITHOUT)[0].partition(CHANGED)[0] for name in releases))
    return tuple(word for word in str(config.extra.get("release", "")).split(", ") if word)
