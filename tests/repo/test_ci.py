"""The Action, the list of known failures and the examples, as a runner runs them: in a clean folder, step by step."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml

from tidegauge import EXAMPLES, __suite__
from tidegauge.cli.main import main
from tidegauge.util.errors import UsageError
from tidegauge.util.junit import JobSummary, known_failures, markdown, read_cases, summarize, summary_annotations
from tidegauge.util.untrusted_text import shortened

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
WITH_PLUGIN = {"PYTEST_PLUGINS": "tidegauge.drive.pytest_plugin.plugin"}
if "tidegauge" in {point.name for point in entry_points(group="pytest11")}:
    WITH_PLUGIN = {}  # it is installed, and found
RIGHT, WRONG = EXAMPLES / "golden" / "commit.ndjson", EXAMPLES / "golden" / "fails-hw-not-clamped.ndjson"


# ---------------------------------------------------------------------------------------------------------------------
# A runner of composite actions


@dataclass(frozen=True)
class Job:
    """What a run of the Action leaves: exit code, standard output, job summary, outputs, and its folder."""

    code: int
    stdout: str
    summary: str
    outputs: Mapping[str, str]
    folder: Path

    def badge(self) -> str:
        return str(json.loads((self.folder / "tidegauge-results" / "badge.json").read_text())["message"])


def run_action(folder: Path, *, install: bool = False, **inputs: str) -> Job:
    """Run the steps with a `run`, in bash as GitHub does, until one fails. Unless it is to `install`, this checkout runs."""
    temp = folder.parent / f"{folder.name}-runner"
    bin_ = temp / "tidegauge" / "bin"
    bin_.mkdir(parents=True, exist_ok=True)
    for name, starts in () if install else (("python", ""), ("tidegauge", "-m tidegauge ")):
        (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {starts}"$@"\n')
        (bin_ / name).chmod(0o755)
    values = {name: str(row.get("default", "")) for name, row in ACTION["inputs"].items()}
    values |= {name.replace("_", "-"): value for name, value in inputs.items()}
    files = {name: temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    common = {**os.environ, "RUNNER_TEMP": str(temp), "GITHUB_ACTION_PATH": str(ROOT)}
    common |= {} if install else {"PYTHONPATH": str(ROOT), **WITH_PLUGIN}
    common |= {"GITHUB_ACTIONS": "true"} | {name: str(file) for name, file in files.items()}
    stdout, code = "", 0
    for step in ACTION["runs"]["steps"]:
        if "run" not in step or (step["name"].startswith("install") and not install):
            continue
        env = {name: filled(text, values) for name, text in step.get("env", {}).items()}
        script = temp / "step.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=folder,
            env=common | env,
            text=True,
            capture_output=True,
            check=False,
        )
        stdout, code = stdout + done.stdout + done.stderr, done.returncode
        if code:
            break
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return Job(code, stdout, files["GITHUB_STEP_SUMMARY"].read_text(), outputs, folder)


def filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: values[found[1]], text)


# ---------------------------------------------------------------------------------------------------------------------
# The three examples

BUILT = {"python": (), "javascript": (), "go": ("go", "build", "-o", "broker", ".")}
NEEDS = {"python": "python3", "javascript": "node", "go": "go"}
WRONG_LINE = {
    "python": ("broker.py", "self.ends, self.epoch_start = {}, len(self.log)", "self.epoch_start = len(self.log)"),
    "javascript": ("broker.js", "this.ends.clear();", ""),
    "go": ("broker.go", "r.ends, r.epochStart = map[int]int{}, len(r.log)", "r.epochStart = len(r.log)"),
}
"""F2, as Kafka has it: what a follower had in an earlier epoch is not forgotten."""


DRIVEN_NAME = {"python": "example-python", "javascript": "example-js", "go": "example-go"}


def example(language: str, place: Path, *, wrong: bool = False) -> Path:
    """A copy of the repository of an example, built."""
    if shutil.which(NEEDS[language]) is None:
        pytest.skip(f"no {NEEDS[language]} on the PATH")
    folder = Path(shutil.copytree(ROOT / "examples" / language, place / language))
    if wrong:
        name, right_text, wrong_text = WRONG_LINE[language]
        text = (folder / name).read_text(encoding="utf-8")
        assert right_text in text
        (folder / name).write_text(text.replace(right_text, wrong_text), encoding="utf-8")
    if BUILT[language]:
        env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
        built = subprocess.run(BUILT[language], cwd=folder, env=env, text=True, capture_output=True, check=False)
        if "requires go >=" in built.stderr:
            pytest.skip(built.stderr.strip())
        assert built.returncode == 0, built.stderr
    return folder


def workflow(language: str) -> Mapping[str, str]:
    """The inputs that the example's own workflow gives the Action, on a smaller graph."""
    smaller = {"args": "--tidegauge-walks 60 --tidegauge-graphs small"}
    # The example in Python has tests of its own, which its workflow runs; its adapter is driven as any other.
    if language == "python":
        return {
            "command": "drive",
            "target": f"{sys.executable} adapter.py",
            "known_failures": "known-failures.txt",
            **smaller,
        }
    steps = yaml.safe_load((ROOT / "examples" / language / "watermark.yml").read_text(encoding="utf-8"))
    (step,) = [step for step in steps["jobs"]["tidegauge"]["steps"] if step.get("uses", "").startswith("tidegauge/")]
    inputs = {name.replace("-", "_"): value for name, value in step["with"].items()}
    return {**inputs, **smaller}


@pytest.mark.parametrize("language", ["javascript", "go", "python"])
def test_the_action_is_green_on_a_right_example(language: str, tmp_path: Path) -> None:
    job = run_action(example(language, tmp_path), **workflow(language))
    assert job.code == 0, job.stdout
    assert "nothing unexpected" in job.summary
    assert f"suite {__suite__}" in job.summary
    assert job.outputs["exit-code"] == "0"
    assert job.badge() == f"conforms (suite {__suite__})"


@pytest.mark.long
def test_the_action_installs_what_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the checkout of the Action, in an environment of its own; it takes a package index."""
    for name in ("PYTHONPATH", "PYTEST_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    job = run_action(example("javascript", tmp_path), install=True, **workflow("javascript"))
    assert job.code == 0, job.stdout
    assert "nothing unexpected" in job.summary


@pytest.mark.parametrize("language", ["javascript", "python", pytest.param("go", marks=pytest.mark.long)])
def test_it_is_red_on_a_wrong_one_until_that_is_known(language: str, tmp_path: Path) -> None:
    """With what is needed to see why; a line of the list whose case passes is red again."""
    folder = example(language, tmp_path, wrong=True)
    job = run_action(folder, **workflow(language))
    assert (job.code, job.outputs["exit-code"]) == (1, "1"), job.stdout
    assert re.match(rf"### `{DRIVEN_NAME[language]}`: \d+ unexpected", job.summary), "headed by what was driven"
    assert "DIFFERS after" in job.summary
    assert "::error title=" in job.stdout
    failing = re.findall(r"<summary><code>(.*?)</code>", job.summary)
    assert failing
    (folder / "known-failures.txt").write_text("".join(f"{name}  # F2\n" for name in failing), encoding="utf-8")
    job = run_action(folder, **workflow(language))
    assert job.code == 0, job.stdout
    assert "| known |" in job.summary
    (folder / "known-failures.txt").write_text("".join(f"{name}\n" for name in [*failing, "smoke"]), encoding="utf-8")
    job = run_action(folder, **workflow(language))
    assert job.code == 1
    assert "`smoke`" in job.summary
    assert "stale" in job.summary


@pytest.mark.parametrize("wrong", [False, True])
def test_the_example_in_python_is_its_own_tests(wrong: bool, tmp_path: Path) -> None:
    """By pytest and nothing else: the plugin is found."""
    folder = example("python", tmp_path, wrong=wrong)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    env = {
        **os.environ,
        **WITH_PLUGIN,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(command, cwd=folder, env=env, text=True, capture_output=True, check=False)
    assert done.returncode == int(wrong), done.stdout + done.stderr
    if wrong:
        assert "DIFFERS after" in done.stdout


# ---------------------------------------------------------------------------------------------------------------------
# The other commands of the Action


def test_the_action_judges_traces(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    assert run_action(tmp_path / "job", command="check", target=str(RIGHT), args="--release 4.1.1").code == 0
    job = run_action(tmp_path / "job", command="check", target=f"{RIGHT} {WRONG}")
    assert job.code == 1
    assert "<code>HW-05</code> failure" in job.summary
    assert (job.folder / "tidegauge-results" / "report" / "index.html").is_file()


def test_the_action_says_what_it_was_not_given_right(tmp_path: Path) -> None:
    """Nobody listens; no such command; another suite; nothing that can be read."""
    (tmp_path / "job").mkdir()
    assert run_action(tmp_path / "job", command="probe", target="127.0.0.1:1").code == 2
    job = run_action(tmp_path / "job", command="judge", target=str(RIGHT))
    assert (job.code, "expected check, drive or probe; seen judge" in job.stdout) == (2, True)
    job = run_action(tmp_path / "job", command="check", target=str(RIGHT), suite="2020.01")
    assert (job.code, "expected the suite 2020.01" in job.stdout) == (2, True)
    (tmp_path / "job" / "torn.ndjson").write_text("{\n", encoding="utf-8")
    job = run_action(tmp_path / "job", command="check", target="torn.ndjson")
    assert (job.code, "no event was judged" in job.summary) == (2, True)


def test_every_input_is_used_and_every_shell_is_named() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert [name for name in ACTION["inputs"] if f"inputs.{name}" not in text] == []
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"] if "run" in step)
    # A value in a script is a command of whoever chose it: scripts read the environment only.
    assert not [step for step in ACTION["runs"]["steps"] if "${{" in step.get("run", "")]


# ---------------------------------------------------------------------------------------------------------------------
# The summary and the list

CASE = '<testsuites name="run"><testsuite name="s">{}</testsuite></testsuites>'
RESULTS = CASE.format(
    '<testcase name="right"/><testcase name="test_it[wrong]"><failure message="no">story</failure></testcase>'
    '<testcase name="open"><skipped message="later"/></testcase>'
)


def summed(tmp_path: Path, listed: str, results: str = RESULTS) -> JobSummary:
    (tmp_path / "results.xml").write_text(results, encoding="utf-8")
    (tmp_path / "known.txt").write_text(listed, encoding="utf-8")
    title, cases = read_cases(tmp_path / "results.xml")
    return summarize(title, cases, known_failures(tmp_path / "known.txt"))


@pytest.mark.parametrize(
    ("listed", "code", "stale"),
    [
        ("", 1, []),
        ("wrong", 0, []),
        ("wrong # why\nopen", 0, []),
        ("flaky: wrong\nflaky:right", 0, []),
        ("wrong\nright", 1, ["right"]),
        ("wrong\ngone", 1, ["gone"]),
        ("wrong\nflaky: gone", 1, ["gone"]),
    ],
)
def test_the_list_is_strict(listed: str, code: int, stale: list[str], tmp_path: Path) -> None:
    """What fails is listed, what is listed fails; a flaky case may do either, and has to be there."""
    summary = summed(tmp_path, listed)
    assert (summary.exit_code, list(summary.stale)) == (code, stale)


def test_an_error_and_a_run_without_a_decision_do_not_pass(tmp_path: Path) -> None:
    error = CASE.format('<testcase name="whole"><error message="torn"/></testcase><testcase name="right"/>')
    assert summed(tmp_path, "", error).exit_code == 2
    assert summed(tmp_path, "", CASE.format('<testcase name="open"><skipped message="later"/></testcase>')).exit_code == 3


def test_what_a_broker_says_is_no_markdown_and_no_command(tmp_path: Path) -> None:
    """Neither in the summary nor in an annotation."""
    hostile = "```\n# PASS\n::error::x\n<img src=x>|`a`\u202e"
    escaped = hostile.replace("<", "&lt;").replace("\n", "&#10;")
    results = CASE.format(f'<testcase name="{escaped}"><failure message="m">{escaped}</failure></testcase>')
    summary = summed(tmp_path, "", results)
    lines = markdown(summary).splitlines()
    inside = lines[lines.index("````text") + 1 : lines.index("````")]
    assert "# PASS" in inside
    assert not [line for line in lines if line.startswith(("#", "::", "<img")) and line not in inside and line != lines[0]]
    assert "\u202e" not in markdown(summary)
    assert all(line.startswith("::error title=") and "\n" not in line for line in summary_annotations(summary))


def test_a_long_failure_ends_with_a_whole_line(tmp_path: Path) -> None:
    """In the summary, and in an annotation."""
    story = "\n".join(f"step {number} of a long story" for number in range(1000))
    summary = summed(tmp_path, "", CASE.format(f'<testcase name="long"><failure message="m">{story}</failure></testcase>'))
    for text in (markdown(summary), *(one.replace("%0A", "\n") for one in summary_annotations(summary))):
        lines = text.splitlines()
        assert lines[lines.index("..") - 1].endswith("of a long story")
    assert shortened("two words", 6) == "two .."
    assert shortened("oneword", 3) == "one .."
    assert shortened("as it is", 8) == "as it is"
    assert shortened("step 3 differs\n" + "word " * 20, 50) == "step 3 differs\n" + "word " * 7 + ".."


def test_what_is_no_junit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text("<html/>", encoding="utf-8")
    with pytest.raises(UsageError, match="seen the element html"):
        read_cases(tmp_path / "x.xml")
    (tmp_path / "x.xml").write_text("PASS", encoding="utf-8")
    assert main(["summary", str(tmp_path / "x.xml")]) == 2
    assert main(["summary", str(tmp_path / "none.xml")]) == 2
