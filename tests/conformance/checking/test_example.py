"""The example in docs/traces.md is what it says: a right trace, of which every rule that is decided holds."""

from pathlib import Path

from tidegauge.conformance.checking.check import check
from tidegauge.conformance.checking.verdicts import Verdict

PAGE = (Path(__file__).parents[3] / "docs" / "traces.md").read_text(encoding="utf-8")


def test_the_example_passes(tmp_path: Path) -> None:
    """With the acknowledged record still there at the end."""
    example = PAGE.partition("```json\n")[2].partition("```")[0]
    path = tmp_path / "example.ndjson"
    path.write_text(example, encoding="utf-8")
    report = check([path])
    assert (report.verdict, report.problems) == (Verdict.PASS, ())
    verdicts = {one.rule.id: one.verdict for one in report.rules}
    assert verdicts["DATA-03"] is verdicts["ACK-01"] is verdicts["HW-03"] is Verdict.PASS
