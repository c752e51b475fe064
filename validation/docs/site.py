"""The documentation as a site: the pages of docs/, the README, and a reference made from the code.

`python -m validation.docs.site --out site` builds it with Sphinx, for which a warning is an error. Why Sphinx:
docs/decisions/0017-sphinx-makes-the-site.md.

Rules of this file

1. The pages are those of the checkout: nothing is written twice for the site. What they link to outside of docs/ is no page
   of it: rule 3, or it is named as a path.
2. The reference is made from `tidegauge.__all__`, the parser of the command line and the rulebook: what they gain, it has.
3. A link to a small file that is no page, such as an example, a schema or a scenario, leads to a copy of it.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tidegauge
from tidegauge.cli.main import COMMANDS, parser
from tidegauge.conformance.judge.rulebook import rulebook
from tidegauge.util.untrusted_text import visible
from tidegauge.util.version import TOOL
from validation.docs.rule_pages import rule_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GROUPS = {
    "You run brokers": ("first-incident", "operators", "kafka-logs", "judge", "upgrades"),
    "You write a broker": ("first-adapter", "drive", "probe", "traces", "ci", "python", "third-parties", "kafka-releases"),
    "You change the protocol": ("first-change", "spec-for-kafka-people", "mapping", "proofs", "findings"),
    "Reference": ("cli", "api", "rules", "glossary", "stable"),
    "Measurements": ("figures", "benchmarks", "spark"),
}
CONFIGURATION = """project, author, release = "Tidegauge", "the Tidegauge maintainers", "{release}"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme, html_title = "furo", "Tidegauge"
myst_heading_anchors, myst_enable_extensions = 4, ["attrs_inline"]
autodoc_member_order, highlight_language = "bysource", "none"
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
"""
COPIED = (".js", ".go", ".py", ".rs", ".json", ".toml", ".txt", ".ipynb", ".yml", ".tla")
_LINK = re.compile(r"(!?)\[([^\]\n]{0,300})\]\(([^)\s]{1,300})\)")


def stage(folder: Path) -> None:
    """Write the sources of the site into an empty folder."""
    shutil.copytree(DOCS, folder, dirs_exist_ok=True)
    for page in folder.rglob("*.md"):
        home = DOCS / page.relative_to(folder).parent
        page.write_text(_linked(page.read_text(encoding="utf-8"), home, page.parent, folder), encoding="utf-8")
    index = _linked((ROOT / "README.md").read_text(encoding="utf-8"), ROOT, folder, folder)
    pages = {path.stem for path in folder.glob("*.md")} | {"cli", "api", "rules"}
    unlisted = pages - {page for group in GROUPS.values() for page in group}
    if unlisted:
        raise SystemExit(
            f"validation.docs.site: expected each page in a group of GROUPS; seen {', '.join(sorted(unlisted))}"
        )
    groups = dict(GROUPS)
    trees = [_tree(name, pages_of_group) for name, pages_of_group in groups.items()]
    decisions = sorted(f"decisions/{path.stem}" for path in (folder / "decisions").glob("*.md"))
    (folder / "index.md").write_text("\n".join([index, *trees, _tree("Decisions", decisions)]), encoding="utf-8")
    (folder / "rules").mkdir()
    rules = ((f"rules/{rule.id}", rule_page(rule)) for rule in rulebook().values())
    for name, lines in (("cli", _cli()), ("api", _api()), ("rules", _rules()), *rules):
        (folder / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "conf.py").write_text(CONFIGURATION.format(release=tidegauge.__version__), encoding="utf-8")


def _tree(caption: str, pages: tuple[str, ...] | list[str]) -> str:
    return "\n".join(["```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```", ""])


def _linked(text: str, home: Path, page: Path, folder: Path) -> str:
    """Return a page whose links work from `page`; those to files that are no pages become their paths."""

    def link(match: re.Match[str]) -> str:
        image, words, target = match.groups()
        place, _, anchor = target.partition("#")
        if not place or ":" in place:
            return match[0]
        file = (home / place).resolve()
        if not file.exists():
            raise SystemExit(f"{__name__}: expected a file at the link {target}; seen none, in {home}")
        if file == ROOT / "README.md":
            inside = folder / "index.md"
        elif file.is_relative_to(DOCS) and file.is_file():
            inside = folder / file.relative_to(DOCS)
        elif file.is_file() and file.suffix in COPIED:
            inside = folder / "files" / file.relative_to(ROOT)
            inside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, inside)
        else:
            path = file.relative_to(ROOT)
            return words if f"`{path}`" == words else f"{words} (`{path}`)"
        relative = Path(os.path.relpath(inside, page)).as_posix()
        return f"{image}[{words}]({relative}{'#' if anchor else ''}{anchor})"

    return _LINK.sub(link, text)


def _cli() -> Iterator[str]:
    yield from ("# The command line", "", "```text", *_help([]), "```")
    for name in COMMANDS:
        yield from ("", f"## tidegauge {name}", "", "```text", *_help([name]), "```")


def _help(words: list[str]) -> list[str]:
    """Return the help of a command, as it is printed."""
    top = parser()
    for action in top._subparsers._group_actions if words and top._subparsers else ():
        top = action.choices[words[0]]  # type: ignore[index]
    return top.format_help().splitlines()


def _api() -> Iterator[str]:
    yield from ("# The library", "", "[Examples and a table](python.md). All other names may change with any release.", "")
    for name in tidegauge.__all__:
        value = getattr(tidegauge, name)
        kind = "autoclass" if isinstance(value, type) else "autofunction" if callable(value) else "py:data"
        more = {"autoclass": (":members:", ":undoc-members:"), "py:data": (f":type: {type(value).__name__}",)}
        lines = "\n   ".join((f".. {kind}:: tidegauge.{name}", *more.get(kind, ())))
        yield f"## {name}\n\n```{{eval-rst}}\n{lines}\n```\n"


def _rules() -> Iterator[str]:
    yield from ("# The rules of the judge", "", "[How they are judged](judge.md).", "")
    yield from (f"* [{rule.id}](rules/{rule.id}.md): {rule.sentence}" for rule in rulebook().values())
    yield from ("", _tree("Rules", [f"rules/{rule}" for rule in rulebook()]))


def llms(folder: Path) -> str:
    """Return llms.txt: each page with its title, for programs that read."""
    lines = ["# Tidegauge", "", f"> Tells whether a broker's high watermark can be trusted. {TOOL}", ""]
    for group, pages in GROUPS.items():
        lines += [f"## {group}", ""]
        for page in pages:
            title = (folder / f"{page}.md").read_text(encoding="utf-8").lstrip().partition("\n")[0].lstrip("# ")
            lines.append(f"- [{visible(title)}](_sources/{page}.md.txt)")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Build the site, and return the exit code of Sphinx."""
    from sphinx.cmd.build import build_main  # noqa: PLC0415  a dependency of this command alone

    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--out", default="site", help="the folder to write (default: site)")
    out = Path(options.parse_args().out)
    with tempfile.TemporaryDirectory() as folder:
        stage(Path(folder))
        code: int = build_main(["-q", "-W", "--keep-going", "-b", "html", folder, str(out)])
        (out / "llms.txt").write_text(llms(Path(folder)), encoding="utf-8")
    print(f"{out}/index.html: {sum(1 for _ in out.rglob('*.html'))} pages")
    return code


if __name__ == "__main__":
    sys.exit(main())
