"""Makes docs/third-parties.md from the results of the probe."""

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import fill

from tidegauge.drive.probe.run import CheckVerdict
from validation.docs.tables import table
from validation.third_parties.results import CheckResult, ThirdPartyResult
from validation.third_parties.third_party import Reason, ThirdParty

HEAD = """# Third-party brokers

[`tidegauge probe`](probe.md) sent client requests to other projects' brokers, which ran on this machine with their own
settings. Every response is compared with Kafka's, to the error code. A fake for tests, or a broker with another storage,
may differ on purpose: each difference is listed with its place in the sources.

`./run third-parties` probes them again and makes this page from the results (`validation/third_parties/results.json`, which
has each check with the expected and the seen value). The command fails if a failing check has no reason in
`validation/third_parties`, and if no failing check needs a reason any more. A row holds only for its version and its day.

* **differs**: Kafka does something else, and the project does not exclude this in its own documents.
* **not claimed**: the project's own documents exclude this.
* **not offered**: ApiVersions does not offer the request, or not in the needed version.
* **undecided**: there was nothing to compare.
"""
WIDTH = 125
OVERVIEW = ("", "version", "probed", "checks", "pass", "differs", "not claimed", "not offered", "undecided")


def failures(party: ThirdParty, result: ThirdPartyResult) -> Mapping[Reason | None, list[CheckResult]]:
    """Return the checks that fail, by reason; None for those that were not looked up."""
    by_reason: dict[Reason | None, list[CheckResult]] = {}
    for check in result.checks:
        if check.verdict == CheckVerdict.FAIL.value:
            by_reason.setdefault(party.reason(check.id), []).append(check)
    return by_reason


def stale(party: ThirdParty, result: ThirdPartyResult) -> list[Reason]:
    """Return the reasons that no failing check needs."""
    # A reason outlives its failure when the project has mended it; the page must not keep it.
    needed = failures(party, result)
    return [reason for reason in party.reasons if reason not in needed]


def third_parties_page(results: Sequence[tuple[ThirdParty, ThirdPartyResult]]) -> str:
    """Return the whole page."""
    overview = table(OVERVIEW, (_row(party, result) for party, result in results))
    return "\n".join((HEAD, overview, "", *(_section(party, result) for party, result in results)))


def _row(party: ThirdParty, result: ThirdPartyResult) -> Sequence[str]:
    by_reason = failures(party, result)
    differs = sum(len(checks) for reason, checks in by_reason.items() if reason is None or reason.claimed)
    unclaimed = sum(len(checks) for reason, checks in by_reason.items() if reason is not None and not reason.claimed)
    counts = [sum(check.verdict == verdict.value for check in result.checks) for verdict in CheckVerdict]
    passed, _, unsupported, undecided = counts
    numbers = (len(result.checks), passed, differs, unclaimed, unsupported, undecided)
    return (party.title, result.version, result.day, *map(str, numbers))


def _section(party: ThirdParty, result: ThirdPartyResult) -> str:
    by_reason = failures(party, result)
    lines = [f"## {party.title}", "", fill(party.about, WIDTH, break_on_hyphens=False), ""]
    for title, claimed in (("What differs", True), ("What it does not claim", False)):
        rows = [
            _reason(reason, by_reason[reason])
            for reason in party.reasons
            if reason in by_reason and reason.claimed is claimed
        ]
        if rows:
            lines += [
                f"### {title}",
                "",
                table(("rule", "what", "checks", "where"), sorted(rows, key=_by_rule)),
                "",
            ]
    # Failures without a reason are on the page too, although the command fails for them.
    if None in by_reason:
        rows = [(check.rule or "-", check.id, _plain(check.says)) for check in by_reason[None]]
        lines += ["### Not looked into yet", "", table(("rule", "check", "seen"), rows), ""]
    return "\n".join(lines + _undecided(result))


def _reason(reason: Reason, checks: Sequence[CheckResult]) -> Sequence[str]:
    rules = ", ".join(sorted({check.rule for check in checks if check.rule})) or "-"
    return (rules, reason.text, ", ".join(f"`{check.id}`" for check in checks), reason.source)


def _by_rule(row: Sequence[str]) -> tuple[bool, str]:
    # Rows without a rule come last.
    return row[0] == "-", row[0]


def _undecided(result: ThirdPartyResult) -> list[str]:
    # What ApiVersions does not offer says the same of every party: the overview counts it, results.json has the checks.
    why: dict[str, list[str]] = {}
    for check in result.checks:
        if check.verdict == CheckVerdict.UNDECIDED.value:
            why.setdefault(_plain(check.says), []).append(check.id)
    return ["### Undecided", "", *(f"* {says}: {_counted(checks)}" for says, checks in why.items()), ""] if why else []


def _counted(ids: Sequence[str]) -> str:
    # A reason that hits a group hits most of its checks: the number per group is enough, results.json has the ids.
    groups = Counter(check.partition(".")[0] for check in ids)
    return f"`{ids[0]}`" if len(ids) == 1 else ", ".join(f"{count} of `{group}`" for group, count in groups.items())


def _plain(says: str) -> str:
    return says.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
