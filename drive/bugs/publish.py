"""The kill matrix as the page has it: `python -m tidegauge.drive.bugs.publish` makes its table in docs/drive.md anew."""

from tidegauge.drive.bugs.known import BUGS
from tidegauge.drive.bugs.matrix import kept, table
from tidegauge.drive.publish import PAGE, with_table


def page_with_bugs(page: str) -> str:
    """The page with the table of the kept matrix."""
    return with_table(page, "bugs", "drive.bugs.publish", table(kept().rows, {bug.name: bug.says for bug in BUGS.values()}))


if __name__ == "__main__":
    PAGE.write_text(page_with_bugs(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
