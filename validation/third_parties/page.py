"""Makes docs/third-parties.md from the results of the probe."""

from collections.abc import Mapping, Sequence
from textwrap import fill

from tidegauge.drive.probe.run import CheckVerdict
from validation.docs.tables import table
from validation.third_parties.results import CheckResult, ThirdPartyResult
from validation.third_parties.third_party import Reason, ThirdParty

HEAD = """# Third-party brokers

Other projects' brokers, started on the loopback with their own settings and asked by [`tidegauge probe`](probe.md) whatever
a client may ask. Kafka is the measure here, to the error code. The authors of a fake for tests, or of a broker with another
storage, may well have decided otherwise: each difference is listed with the place in their sources. Checks that pass are
only counted.

`./run third-parties` probes them again and makes this page of the results (`validation/third_parties/results.json`). Every
failure was looked up in the sources first: the command fails for a failing check without a reason in
`validation/third_parties`, and for a reason that no failing check needs any more. A row holds for its version and its day
only. The rule is the one that the checks are about.

* **differs**: Kafka does something else, and nothing that the project says about itself excludes it.
* **not claimed**: the project says itself that it does not do this.
* **not offered**: ApiVersions does not offer the request, or not in the version that it takes.
* **undecided**: there was nothing to compare.
"""
WIDTH = 125
OVERVIEW = ("", "version", "probed", "checks", "pass", "differs", "not claimed", "not offered", "undecided")


def failures(party: ThirdParty, result: ThirdPartyResult) -> Mapping[Reason | None, list[CheckResult]]:
    """Return the checks that fail, by reason; None for those that were not looked up."""
    found: dict[Reason | None, list[CheckResult]] = {}
    for check in result.checks:
        if check.verdict == CheckVerdict.FAIL.value:
            found.setdefault(party.reason(check.id), []).append(check)
    return found


def stale(party: ThirdParty, result: ThirdPartyResult) -> list[Reason]:
    """Return the reasons that no failing check needs."""
    needed = failures(party, result)
    return [reason for reason in party.reasons if reason not in needed]


def third_parties_page(results: Sequence[tuple[ThirdParty, ThirdPartyResult]]) -> str:
    """Return the whole page."""
    overview = table(OVERVIEW, (_row(party, result) for party, result in results))
    return "\n".join((HEAD, overview, "", *(_section(party, result) for party, result in results)))


def _row(party: ThirdParty, result: ThirdPartyResult) -> Sequence[str]:
    found = failures(party, result)
    differs = sum(len(checks) for reason, checks in found.items() if reason is None or reason.claimed)
    unclaimed = sum(len(checks) for reason, checks in found.items() if reason is not None and not reason.claimed)
    counts = [sum(check.verdict == verdict.value for check in result.checks) for verdict in CheckVerdict]
    passed, _, unsupported, undecided = counts
    numbers = (len(result.checks), passed, differs, unclaimed, unsupported, undecided)
    return (party.title, result.version, result.day, *map(str, numbers))


def _section(party: ThirdParty, result: ThirdPartyResult) -> str:
    found = failures(party, result)
    lines = [f"## {party.title}", "", fill(party.about, WIDTH, break_on_hyphens=False), ""]
    for title, claimed in (("What differs", True), ("What it does not claim", False)):
        rows = [_reason(reason, found[reason]) for reason in party.reasons if reason in found and reason.claimed is claimed]
        if rows:
            lines += [
                f"### {title}",
                "",
                table(("rule", "what", "checks", "for instance", "where"), sorted(rows, key=_by_rule)),
                "",
            ]
    if None in found:
        rows = [(check.rule or "-", check.id, _plain(check.says)) for check in found[None]]
        lines += ["### Not looked into yet", "", table(("rule", "check", "seen"), rows), ""]
    return "\n".join(lines + _open(result))


def _reason(reason: Reason, checks: Sequence[CheckResult]) -> Sequence[str]:
    rules = ", ".join(sorted({check.rule for check in checks if check.rule})) or "-"
    return (rules, reason.text, ", ".join(f"`{check.id}`" for check in checks), _plain(checks[0].says), reason.source)


def _by_rule(row: Sequence[str]) -> tuple[bool, str]:
    # Rows without a rule come last.
    return row[0] == "-", row[0]


def _open(result: ThirdPartyResult) -> list[str]:
    lines = []
    for title, verdict in (("Not offered", CheckVerdict.NOT_SUPPORTED), ("Undecided", CheckVerdict.UNDECIDED)):
        why: dict[str, list[str]] = {}
        for check in result.checks:
            if check.verdict == verdict.value:
                why.setdefault(_plain(check.says), []).append(f"`{check.id}`")
        if why:
            lines += [f"### {title}", "", *(f"* {says}: {', '.join(checks)}" for says, checks in why.items()), ""]
    return lines


def _plain(says: str) -> str:
    return says.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
