"""What releases have done that today's does not: known bugs with switches, and every other switch that was turned."""

from tidegauge.conformance.judging.rulebook import known_bugs
from tidegauge.drive.runner.reference import Finding
from tidegauge.impl.profiles import FETCH_TRUNCATION, REPAIRED, SKIPS_EQUAL
from tidegauge.impl.releases import SINCE


def broker_findings() -> list[Finding]:
    """Return every known bug with switches, and whatever else releases have done that today's does not."""
    best = FETCH_TRUNCATION._replace(
        keeps_remote_leo=REPAIRED.keeps_remote_leo,
        reads_equal_partition_epoch=SKIPS_EQUAL.reads_equal_partition_epoch,
        hw_rounded_to_batches=False,
    )
    findings = []
    for bug in known_bugs().values():
        right = {name: getattr(best, name) for name in bug.switches}
        if bug.switches and right != dict(bug.switches):
            findings.append(Finding(bug.name, bug.says, bug.switches, right))
    known = {name for finding in findings for name in finding.has}
    for name, since in SINCE.items():
        now = getattr(best, name)
        others = dict.fromkeys(value for _, value in since if value != now)
        if name not in known:
            findings += [Finding(f"`{name}` = {_value_text(value)}", "", {name: value}, {name: now}) for value in others]
    return findings


def _value_text(value: bool | str) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else value
