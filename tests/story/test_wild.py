"""Logs as people have them: what is to be told of each case is told, and nothing that was not so."""

from pathlib import Path
from typing import Any

import pytest

from tests.story.conftest import expected, matches
from tidegauge.story.story import story_of

CASES = expected()
PARTS = ("story", "losses", "known_bugs")


def missing_facts(case: dict[str, Any], report: dict[str, Any]) -> list[str]:
    """What an expected entry asks for and the report lacks, or what it must not say."""
    lacking = [
        f"{part}: none matches {wanted}"
        for part in ("story", "losses")
        for wanted in case.get(part, [])
        if not any(matches(wanted, one) for one in report[part])
    ]
    lacking += [
        f"{part}: says {unwanted}"
        for part, objects in case.get("not", {}).items()
        for unwanted in objects
        if any(matches(unwanted, one) for one in report[part])
    ]
    if case.get("losses") == []:
        lacking += [f"losses: {one}" for one in report["losses"] if one["committed"] == "yes"]
    named = {bug["bug"] for bug in report["known_bugs"]}
    return lacking + [f"known_bugs: {bug}" for bug in case.get("known_bugs", []) if bug not in named]


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_everything_that_is_to_be_told_of_a_case_is_told(case: dict[str, Any], wild: Path) -> None:
    assert missing_facts(case, story_of([wild / case["case"]]).as_json()) == []


def test_the_comparison_can_fail(wild: Path) -> None:
    case = next(one for one in CASES if one["case"] == "08-unclean-drill-kraft")
    report = story_of([wild / case["case"]]).as_json()
    assert missing_facts(case, report | {"losses": []}) != []
    assert missing_facts(case | {"not": {"losses": [{"committed": "yes"}]}}, report) != []
    assert missing_facts(case | {"known_bugs": ["KAFKA-1"]}, report) != []
