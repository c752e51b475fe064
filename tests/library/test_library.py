"""The library is what `tidegauge.__all__` names: documented, typed, quick to import, and the same as the command line."""

import ast
import doctest
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tidegauge as tg
from tests.library import user_code
from tidegauge.bundle.writing import write_bundle
from tidegauge.cli.main import main
from tidegauge.traces.kafka_logs.discovery.selection import selection_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
WRONG = tg.EXAMPLES / "golden" / "fails-hw-not-clamped.ndjson"
RIGHT = tg.EXAMPLES / "golden" / "commit.ndjson"
TOY = ROOT / "tidegauge" / "drive" / "adapters" / "python"
CLASSES = [name for name in tg.__all__ if inspect.isclass(getattr(tg, name))]


def run(code: str) -> str:
    """The output of a program of its own."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=True).stdout


# The promise


def test_every_name_is_there_and_documented() -> None:
    """In the page, and in its docstring if it can have one."""
    for name in tg.__all__:
        value = getattr(tg, name)
        assert f"`{name}" in PAGE, f"docs/python.md lacks {name}"
        if inspect.isclass(value) or callable(value):
            assert inspect.getdoc(value), name
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        tg.__getattr__("chekc")


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_and_method_is_in_the_page(name: str) -> None:
    """Those with an underscore are nobody's."""
    section = PAGE.partition(f"| `{name}")[2].partition("\n| `")[0]
    own = vars(getattr(tg, name))
    fields = [field for field in [*inspect.get_annotations(getattr(tg, name)), *own] if not field.startswith("_")]
    assert [field for field in fields if f"`{field}" not in section] == []


def test_the_type_checkers_see_the_names_that_a_program_gets() -> None:
    """The imports under TYPE_CHECKING and the table of places say the same."""
    tree = ast.parse((ROOT / "tidegauge" / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        alias.name: str(node.module).removeprefix("tidegauge.")
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed.pop("drive") == "drive.api"
    assert typed == tg._PLACES
    assert {*typed, "drive", "__version__", "__suite__"} == {*tg.__all__}


def test_an_import_loads_nothing() -> None:
    """No NumPy, no judge; a name loads what it needs."""
    loaded = run("import sys, tidegauge; print([m for m in sys.modules if m.startswith(('tidegauge', 'numpy'))])")
    assert sorted(ast.literal_eval(loaded)) == ["tidegauge", "tidegauge.util", "tidegauge.util.version"]


@pytest.mark.parametrize("before", ["", "import tidegauge.drive.probe.run", "from tidegauge.drive import probe"])
def test_drive_is_a_function_whatever_was_imported_before(before: str) -> None:
    """It has the name of a package, which Python binds over it."""
    code = f"{before}\nimport tidegauge as tg\nfrom tests.library.user_code import smoke, SilentBroker\n"
    assert run(code + "print(callable(tg.drive), smoke(SilentBroker()).verdict)") == "True CONFORMS\n"


DOCTESTED = ["check", "drive", "read", "Report", "PythonBroker"]


@pytest.mark.parametrize("name", DOCTESTED)
def test_the_example_of_a_docstring_runs(name: str) -> None:
    """What is printed is what is there."""
    value = import_module("tidegauge.drive.api").drive if name == "drive" else getattr(tg, name)
    (example,) = doctest.DocTestFinder(recurse=False).find(value, name)
    assert example.examples
    assert doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(example).failed == 0


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    snippets = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, "docs/python.md", "exec"), names)


# A user's types


@pytest.mark.parametrize("broken", [False, True])
def test_mypy_strict_reads_the_code_of_a_user(broken: bool, tmp_path: Path) -> None:
    """And finds what is wrong in it: a misspelt field, a number for a path."""
    pytest.importorskip("mypy")
    text = Path(user_code.__file__).read_text(encoding="utf-8")
    if broken:
        text = text.replace("failure.because", "failure.becuase").replace("tg.read(place)", "tg.read(7)")
    (tmp_path / "code.py").write_text(text, encoding="utf-8")
    lines = ["[mypy]", "strict = true", "[mypy-numba.*,pyarrow.*,pandas.*,llvmlite.*]", "ignore_missing_imports = true"]
    (tmp_path / "mypy.ini").write_text("\n".join(lines), encoding="utf-8")
    checker = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--follow-imports=silent", "code.py"]
    environment = {"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(checker, cwd=tmp_path, env=environment, text=True, capture_output=True, check=False)
    if broken:
        assert '"RuleFailure" has no attribute "becuase"' in done.stdout
        assert 'Argument 1 to "read" has incompatible type "int"' in done.stdout
    else:
        assert done.stdout.startswith("Success"), done.stdout


def test_the_code_of_a_user_runs() -> None:
    assert user_code.broken_rules(str(tg.EXAMPLES / "captures" / "3.4.0" / "b-kill-leader"))[-1] == "HW-06"
    assert user_code.longest(str(RIGHT)) == 2 + 1 + 11
    assert user_code.driven() == "CONFORMS"


# check


def test_a_report_says_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    report = tg.check(WRONG)
    assert main(["check", "--quiet", "--json", str(WRONG)]) == report.exit_code == 1
    printed = json.loads(capsys.readouterr().out)
    assert {**printed, "seconds": 0} == {**report.to_dict(), "seconds": 0}
    assert report.verdict == printed["verdict"] == "FAIL"
    assert [failure.rule for failure in report.failures] == [one["rule"] for one in printed["explanations"]]
    assert str(report).endswith(f"; suite {tg.__suite__})")


def test_what_is_gone_is_told_as_the_command_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    logs = tg.EXAMPLES / "captures" / "4.2.0" / "k-epoch-jump"
    report = tg.check(logs)
    main(["check", "--quiet", "--json", str(logs)])
    printed = json.loads(capsys.readouterr().out)
    assert [(loss.partition, loss.first, loss.end, list(loss.sources)) for loss in report.losses] == [
        (loss["partition"], loss["first"], loss["end"], loss["sources"]) for loss in printed["losses"]
    ]
    # The story's lines alone would take the record for one that was never committed.
    assert {(loss["committed"], loss["acknowledged"], loss["allowed"]) for loss in printed["losses"]} == {("yes", 1, False)}
    assert [(step.kind, step.source) for step in report.story] == [
        (step["kind"], step["source"]) for step in printed["story"]
    ]
    assert tg.check(*tg.read(WRONG)).story == ()


def test_a_trace_in_memory_is_judged_as_its_file_is() -> None:
    """Read, and changed: one field of one event."""
    read = tg.read(WRONG)
    from_file, from_memory = tg.check(WRONG), tg.check(*read)
    assert from_file.failures == from_memory.failures
    assert from_file.rules == from_memory.rules
    (trace,) = tg.read(RIGHT)
    assert tg.check(trace).verdict == "PASS"
    events = [
        tg.Event(event.node, event.event, {**event.fields, "hw": 5} if event.event == "HandleFetch" else event.fields)
        for event in trace.events
    ]
    assert tg.check(tg.Trace("mine", trace.tp, trace.config, tuple(events))).verdict == "FAIL"


def test_what_logs_lack_is_not_lost_when_they_are_read() -> None:
    """A trace knows what its source did not show: judged from memory it passes no sooner."""
    logs = tg.EXAMPLES / "captures" / "3.4.0" / "b-kill-leader"
    assert tg.check(*tg.read(logs)).missing == tg.check(logs).missing


def test_paths_and_traces_are_judged_together() -> None:
    report = tg.check(RIGHT, *tg.read(WRONG))
    assert (report.verdict, report.traces) == ("FAIL", 2)


def test_a_report_as_a_table() -> None:
    table = pytest.importorskip("pandas") and tg.check(WRONG).to_pandas()
    assert list(table.columns) == [*tg.RuleResult.__dataclass_fields__]
    assert set(table[table.failed > 0].rule) == {rule.rule for rule in tg.check(WRONG).rules if rule.failed}


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(tg.TidegaugeError, match=r"pip install 'tidegauge\[pandas\]'"):
        tg.check(WRONG).to_pandas()


def test_the_files_of_a_report(tmp_path: Path) -> None:
    page = tg.check(WRONG).write(tmp_path / "report")
    assert sorted(file.name for file in page.parent.iterdir()) == ["check.json", "check.xml", "index.html"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (tg.check, "expected a path or a trace, seen none"),
        (lambda: tg.check(RIGHT, profile="safe", release="3.4.0"), "expected a profile or a release, seen both"),
        (lambda: tg.drive(["x"], profile="safe", release="3.4.0"), "expected a profile or a release, seen both"),
        (lambda: tg.check(RIGHT, partitions=["orders"]), "expected a topic and a number such as orders-0"),
        (lambda: tg.check(*tg.read(RIGHT), topics=["model"]), "expected broker logs to select topics"),
        (lambda: tg.drive("./adapter --flag"), "a command as a list of words; seen './adapter --flag'"),
    ],
)
def test_a_call_that_is_wrong_says_what_was_expected(call: Any, says: str) -> None:
    with pytest.raises(tg.TidegaugeError, match=re.escape(says)):
        call()


# read


def test_what_cannot_be_read_is_raised_with_what_was(tmp_path: Path) -> None:
    lines = RIGHT.read_text(encoding="utf-8").splitlines()
    (tmp_path / "torn.ndjson").write_text("\n".join([*lines[:-1], "{", "["]), encoding="utf-8")
    with pytest.raises(tg.UnreadableError, match=r"torn.ndjson:12: expected .* \(and 1 more\)$") as raised:
        tg.read(tmp_path / "torn.ndjson")
    assert len(raised.value.problems) == 2
    assert len(raised.value.traces[0].events) == 10
    assert tg.check(tmp_path / "torn.ndjson").exit_code == 2


def test_a_bundle_of_a_mistyped_topic_is_not_left_behind(tmp_path: Path) -> None:
    """It would have the lines of all other topics."""
    mistyped = selection_of(["no-such-topic"], (), None, None)
    target = tmp_path / "b.tar.gz"
    for before in (None, b"another bundle"):
        if before is not None:
            target.write_bytes(before)
        with pytest.raises(tg.TidegaugeError, match="expected a line about no-such-topic, seen none"):
            write_bundle([tg.EXAMPLES / "captures/3.4.0/b-kill-leader"], target, mistyped)
        assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if before is None else [before])


def test_a_large_file_keeps_the_names_of_its_traces(tmp_path: Path) -> None:
    """The judge reads it as columns, which have none."""
    text = RIGHT.read_text(encoding="utf-8")
    copies = 4_000_000 // len(text) + 1
    many = "\n".join(text.strip().replace("golden/commit", f"copy-{number}") for number in range(copies))
    (tmp_path / "many.ndjson").write_text(many + "\n", encoding="utf-8")
    traces = tg.read(tmp_path / "many.ndjson")
    assert [trace.name for trace in traces] == [f"copy-{number}" for number in range(copies)]


# drive


class ToyBroker:
    """The toy broker of the adapters, in this process: it can what its adapter says."""

    name = "toy"
    can = (
        *("metadata", "append", "fetch", "offsets_for_leader_epoch", "fetch_response", "lose_response"),
        *("lag", "lag_apart", "alter_partition_response", "crash"),
    )
    reports = ("result", "requests", "proposal", "leo", "hw", "ends")

    def __init__(self, replica: Any, bug: bool) -> None:
        self.toy, self.bug = replica, bug

    def replica(self) -> "ToyPartition":
        return ToyPartition(self.toy, self.bug)


class ToyPartition:
    def __init__(self, toy: Any, bug: bool) -> None:
        self.toy, self.bug = toy, bug

    def take(self, step: str, **given: Any) -> Mapping[str, Any]:
        result = None
        if step == "open":
            self.replica = self.toy(given["peers"], given["min_insync_replicas"], bug=self.bug)
        else:
            result = getattr(self.replica, step)(**given)
            self.replica.ask()
        return {
            "result": result,
            "requests": self.replica.requests,
            "proposal": self.replica.in_flight,
            "leo": len(self.replica.log),
            "hw": self.replica.hw,
            "ends": [self.replica.end_of(epoch) for epoch in range(self.replica.highest + 1)],
        }


@pytest.mark.parametrize(("bug", "verdict"), [(False, "CONFORMS"), (True, "DIFFERS")])
def test_a_broker_in_python_is_driven_as_the_same_behind_lines(
    bug: bool, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same paths, the same differences."""
    monkeypatch.syspath_prepend(str(TOY))
    inside = tg.drive(ToyBroker(import_module("toy_broker").ToyReplica, bug), graphs=["small"], walks=20)
    command = [sys.executable, str(TOY / "adapter.py"), *(["--bug"] if bug else [])]
    outside = tg.drive(command, graphs=["small"], walks=20)
    assert (inside.verdict, inside.exit_code) == (verdict, int(bug)), str(inside)
    assert (inside.failures, inside.paths, inside.steps) == (outside.failures, outside.paths, outside.steps)


class Wrong(user_code.SilentBroker):
    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = report

    def replica(self) -> "Wrong":  # type: ignore[override]
        return self

    def take(self, *_: Any, **__: Any) -> Mapping[str, Any]:
        return self.report


@pytest.mark.parametrize(
    ("broker", "says"),
    [
        (Wrong({"leo": 0}), 'expected a report with "hw", which the handshake promised'),
        (Wrong({"leo": 0, "hw": "zero"}), 'expected in "hw" an integer'),
        (Wrong({"leo": 0, "hw": {1}}), "expected a report that JSON can hold"),
    ],
)
def test_a_report_that_breaks_the_contract_is_refused(broker: Wrong, says: str) -> None:
    with pytest.raises(tg.TidegaugeError, match=re.escape(says)):
        tg.drive(broker, smoke=True)


@pytest.mark.parametrize("command", ["check", "story", "bundle", "convert"])
def test_an_empty_path_is_refused_and_not_taken_for_the_current_directory(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As "$LOGS" gives where LOGS is not set."""
    monkeypatch.chdir(tg.EXAMPLES / "captures/3.4.0/b-kill-leader")
    out = ["--out", str(tmp_path / "out")] if command == "bundle" else [str(tmp_path / "out")] * (command == "convert")
    assert main([command, "", *out]) == 2
    assert "expected a path, seen an empty one" in capsys.readouterr().err
    with pytest.raises(tg.TidegaugeError, match="expected a path, seen an empty one"):
        tg.check("")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("check", "expected standard input, seen that it is closed"),
        ("story", "expected standard input, seen that it is closed"),
        ("bundle", "expected a file or a directory, seen none at -"),
    ],
)
def test_standard_input_that_is_closed_is_told_so(
    command: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is for a service."""
    monkeypatch.setattr(sys, "stdin", None)
    assert main([command, "-"]) == 2
    assert says in capsys.readouterr().err


def test_a_list_of_paths_is_refused_with_what_to_do() -> None:
    for wrong in ([tg.EXAMPLES], None, 3):
        with pytest.raises(tg.TidegaugeError, match=re.escape("unpack a list, as check(*paths)")):
            tg.check(wrong)  # type: ignore[arg-type]
