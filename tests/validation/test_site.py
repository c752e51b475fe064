"""The site has a page for everything that is promised, and no link that leads nowhere."""

import subprocess
import sys
from pathlib import Path

import pytest

import tidegauge
from tidegauge.cli.main import COMMANDS
from tidegauge.conformance.judge.rulebook import rulebook
from validation.docs import site


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.stage(folder)
    return folder


def test_the_reference_has_every_name_command_and_rule(staged: Path) -> None:
    for page, names in (
        ("api", tidegauge.__all__),
        ("cli", [f"tidegauge {name}" for name in COMMANDS]),
    ):
        headings = [line[3:] for line in (staged / f"{page}.md").read_text().splitlines() if line.startswith("## ")]
        assert headings == list(names)
    assert "--command-config" in (staged / "cli.md").read_text()


def test_a_rule_has_a_page_with_a_trace_that_breaks_it(staged: Path) -> None:
    """The judge has said so when the page was made; what it said is on the page. Most have a scenario, too."""
    index = (staged / "rules.md").read_text()
    assert all(f"[{rule}](rules/{rule}.md)" in index for rule in rulebook())
    pages = {rule: (staged / "rules" / f"{rule}.md").read_text() for rule in rulebook()}
    assert "n1, leader of epoch 2, has the high watermark 1 where the rules allow 0 at most" in pages["HW-08"]
    assert sum("## A scenario, played" in page for page in pages.values()) > 45


def test_every_page_is_in_a_group_and_in_llms_txt(staged: Path) -> None:
    pages = {path.stem for path in staged.glob("*.md")} - {"index"}
    assert pages == {page for group in site.GROUPS.values() for page in group}
    assert all(f"(_sources/{page}.md.txt)" in site.llms(staged) for page in pages)


def test_a_link_goes_to_a_page_or_becomes_a_path_or_is_an_error(tmp_path: Path) -> None:
    def linked(text: str) -> str:
        return site._linked(text, site.DOCS / "decisions", tmp_path / "decisions", tmp_path)

    assert linked("[x](../judge.md#the-page)") == "[x](../judge.md#the-page)"
    assert linked("[home](../../README.md)") == "[home](../index.md)"
    assert linked("[impl](../../tidegauge/impl/README.md)") == "impl (`tidegauge/impl/README.md`)"
    assert linked("[the rules](../../tidegauge/impl/rules.py)") == "[the rules](../files/tidegauge/impl/rules.py)"
    copied = tmp_path / "files/tidegauge/impl/rules.py"
    assert copied.read_bytes() == (site.ROOT / "tidegauge/impl/rules.py").read_bytes()
    assert linked("[x](https://example.org) [y](#here)") == "[x](https://example.org) [y](#here)"
    with pytest.raises(SystemExit, match="seen none"):
        linked("[x](nowhere.md)")


@pytest.mark.long
def test_sphinx_builds_it_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    command = [sys.executable, "-m", "validation.docs.site", "--out", str(tmp_path)]
    assert subprocess.run(command, cwd=site.ROOT, check=False).returncode == 0
    assert all(f"tidegauge.{name}" in (tmp_path / "api.html").read_text() for name in tidegauge.__all__)
    assert 'id="tidegauge.Report.to_dict"' in (tmp_path / "api.html").read_text()
    assert (tmp_path / "llms.txt").is_file()
