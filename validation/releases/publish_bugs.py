"""The kill matrix as the page has it: `python -m validation.releases.publish_bugs` makes its table in docs/drive.md anew."""

from tidegauge.drive.broker.known_bugs import BUGS
from tidegauge.drive.bugs.matrix import kept, table
from tidegauge.traces.made import page_with
from validation.releases.publish import PAGE


def page_with_bugs(page: str) -> str:
    """The page with the table of the kept matrix."""
    rows = table(kept().rows, {bug.name: bug.says for bug in BUGS.values()})
    return page_with({"bugs": rows}, "drive.bugs.publish", page)


if __name__ == "__main__":
    PAGE.write_text(page_with_bugs(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
