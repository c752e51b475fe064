"""The command line as a newcomer meets it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tidegauge import EXAMPLES, __suite__, library
from tidegauge.cli.ci import LANGUAGES
from tidegauge.cli.main import COMMANDS, SHELLS, main, parser
from tidegauge.cli.options import RELEASE_LINES, chosen_master
from tidegauge.impl.releases import FIRST_RELEASE, LAST_RELEASE, parse_release, profile_of_release
from tidegauge.traces.formats import ndjson
from tidegauge.traces.formats.parquet import Reader
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.kafka_logs.capture import shipped


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    """--help names the commands and the exit codes."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    reported = capsys.readouterr().out
    for command in (
        "check",
        "story",
        "bundle",
        "model",
        "prove",
        "generate",
        "convert",
        "bugs",
        "doctor",
        "scenario",
        "play",
        "drive",
        "recheck",
    ):
        assert command in reported
    assert "exit codes" in reported


def test_a_bug_in_real_logs_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, the rule, file and line, the known bug, and a page."""
    code = main(["check", "--quiet", str(shipped()["3.4.0/b-kill-leader"]), "--out", str(tmp_path)])
    reported = capsys.readouterr().out
    assert code == 1
    assert "HW-06" in reported
    assert "n1/server.log:719" in reported
    assert "KAFKA-14704" in reported
    assert (tmp_path / "index.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_verdict_does_not_wait_for_what_it_does_not_use() -> None:
    """Modules that other commands, other inputs and the page need cost a check of logs a quarter of its start."""
    script = (
        "import sys; from tidegauge.cli.main import main; main(['check', '--quiet', sys.argv[1]]);"
        "print(*sorted(name for name in sys.argv[2:] if name in sys.modules), file=sys.stderr)"
    )
    others = ("importlib.metadata", "jinja2", "multiprocessing", "numba", "pyarrow.parquet", "xml.etree", "z3")
    command = [sys.executable, "-c", script, str(shipped()["3.4.0/b-kill-leader"]), *others]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr.split() == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.ndjson", b""),
        ("words.ndjson", b"hello\n"),
        ("binary.ndjson", b"\x00\xff\x7fELF"),
        ("nine.ndjson", b'{"v":9}\n'),
    ],
)
def test_bad_input_is_a_message_and_exit_code_2(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a traceback, never a pass."""
    path = tmp_path / name
    path.write_bytes(content)
    assert main(["check", "--quiet", str(path)]) == 2
    assert name in capsys.readouterr().out


def test_a_directory_without_logs_and_a_missing_path_are_bad_input(tmp_path: Path) -> None:
    """Exit code 2 for both."""
    assert main(["check", "--quiet", str(tmp_path)]) == 2
    assert main(["check", "--quiet", str(tmp_path / "nothing-here")]) == 2


@pytest.mark.parametrize("bucket", ["bucket", "[bucket"], ids=["right", "of no right form"])
def test_a_uri_is_bad_input_where_it_takes_a_path_and_keys_in_it_are_not_repeated(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What else was given is judged; what is followed is that one path."""
    walks = tmp_path / "walks.parquet"
    assert main(["generate", "--quiet", "--traces", "10", "--out", str(walks)]) == 0
    capsys.readouterr()
    uri = f"s3://key:secret@{bucket}/walks.parquet"
    said = f"s3://{bucket}/walks.parquet: expected a path of this machine, seen a URI;"
    main(["check", "--quiet", str(walks), uri])
    out = capsys.readouterr().out
    assert said in out
    assert "10 traces" in out
    assert main(["check", "--quiet", "--follow", uri]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "secret" not in out + err


@pytest.mark.parametrize(
    "command",
    [
        ["check", "walks.parquet", "--out"],
        ["convert", "walks.parquet"],
        ["generate", "--out"],
        ["play", "--save"],
        ["model", "HwOnly", "--export"],
        ["scenario", "--trace"],
    ],
    ids=lambda command: command[0],
)
def test_nothing_is_written_to_a_uri_as_if_it_were_a_path(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else there would be a directory called s3: here."""
    monkeypatch.chdir(tmp_path)
    assert main([*command, "s3://key:secret@bucket/out.ndjson"]) == 2
    assert "s3://bucket/out.ndjson: expected a path of this machine, seen a URI" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_logs_become_ndjson_become_parquet_with_the_same_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is converted is judged alike."""
    lines = tmp_path / "trace.ndjson"
    assert main(["convert", str(shipped()["4.2.0/k-epoch-jump"]), str(lines)]) == 0
    capsys.readouterr()
    assert main(["check", "--quiet", str(lines)]) == 1
    assert "HW-08" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["check", "walks"], ["generate", "--out", "walks"]], ids=["check", "generate"])
def test_spark_without_a_master_is_all_cores_of_this_machine(command: list[str]) -> None:
    """With --processes as many; a master that is named is that one."""
    assert parser().parse_args(command).spark is None
    assert chosen_master(parser().parse_args([*command, "--spark"])) == "local[*]"
    assert chosen_master(parser().parse_args([*command, "--spark", "spark://host:7077"])) == "spark://host:7077"
    if command[0] == "check":
        assert chosen_master(parser().parse_args([*command, "--processes", "3", "--spark"])) == "local[3]"


def test_walks_of_a_fault_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """generate --fault, then check: a rule fails; without the fault none does."""
    right, wrong = tmp_path / "right.parquet", tmp_path / "wrong.parquet"
    assert main(["generate", "--quiet", "--traces", "300", "--out", str(right)]) == 0
    assert main(["generate", "--quiet", "--traces", "300", "--fault", "hw-may-fall", "--out", str(wrong)]) == 0
    assert main(["check", "--quiet", str(right)]) == 0
    assert main(["check", "--quiet", str(wrong)]) == 1
    assert "HW-04" in capsys.readouterr().out


def test_what_does_not_exist_is_named_with_what_does(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong model or fault is exit code 2 and a list of the right ones."""
    assert main(["model", "NoSuchModel"]) == 2
    assert "Small" in capsys.readouterr().err
    assert main(["generate", "--out", "x.parquet", "--fault", "none"]) == 2
    assert "hw-may-fall" in capsys.readouterr().err


def test_a_release_that_goes_beyond_the_specification_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """3.6 forgets the last fetched epoch on an empty response (KAFKA-15510): no state of the model is like that."""
    out = tmp_path / "walks.parquet"
    assert main(["generate", "--quiet", "--model", "Epochs", "--release", "3.6.1", "--out", str(out)]) == 2
    assert "release-3.6.1 goes beyond them (fetcher entry" in capsys.readouterr().err
    assert not out.exists()


def test_a_release_stands_for_its_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What 3.4.1 writes names that release, is judged by it, and is not what a release that checks answers would do."""
    walks = tmp_path / "walks.parquet"
    args = ["--quiet", "--model", "Epochs", "--traces", "3000", "--release", "3.4.1", "--out", str(walks)]
    assert main(["generate", *args]) == 0
    with Reader(walks) as reader:
        assert reader.config.profile == "release-3.4.1"
    assert main(["check", "--quiet", str(walks), "--release", "4.3.1"]) == 1
    assert "FETCH-09" in capsys.readouterr().out


@pytest.mark.parametrize("release", ["3.10", "5.0", "0.9.0", "three", "3.4.x"])
def test_an_unknown_release_is_refused_with_those_there_are(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, before anything is read."""
    assert main(["check", "nothing.ndjson", "--release", release]) == 2
    said = capsys.readouterr().err
    assert release in said
    assert "0.10.2" in said
    assert "4.4" in said


def test_each_broker_is_judged_by_its_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By number, and one without a number for all others; the report and the library say the same."""
    path, mixed = tmp_path / "mixed.ndjson", "1=4.0.0,2=4.0.1,3=4.0.1"
    repaired = ",".join(f"{part}+keeps_remote_leo=off" for part in mixed.split(","))
    ndjson.write(list(impl_walks(30, profile=repaired)), path)
    by_broker = ["--release", "4.0.1", "--release", "1=4.0.0"]
    assert main(["check", "--quiet", str(path), *by_broker]) == 0
    assert main(["check", "--quiet", str(path), "--profile", mixed]) == 0
    assert library.check(path, release={1: "4.0.0", 2: "4.0.1", 3: "4.0.1"}).verdict == "PASS"
    assert main(["check", "--quiet", str(path), "--release", "4.0.1"]) == 1
    assert "FETCH-09" in capsys.readouterr().out
    assert main(["check", "--quiet", str(path), "--release", "1=4.0.0"]) == 2
    assert "none for 2, 3" in capsys.readouterr().out
    assert main(["check", "--quiet", str(path), "--release", "1=4.0.0", "--release", "1=4.0.1"]) == 2


def test_a_profile_and_a_release_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """argparse ends with 2 and says so."""
    with pytest.raises(SystemExit) as ended:
        main(["check", "x", "--profile", "elr", "--release", "3.4.1"])
    assert ended.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


def test_every_release_line_is_one_that_impl_knows() -> None:
    """The lines the command line offers are of_release's, first and last included."""
    known = [line for lines in RELEASE_LINES for line in lines]
    assert all(profile_of_release(line).name == f"release-{line}" for line in known)
    assert (parse_release(known[0]), parse_release(known[-1])) == (FIRST_RELEASE, LAST_RELEASE)


def test_the_suite_is_named_and_another_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """By every command and in every report: a pipeline may pin it."""
    trace = str(EXAMPLES / "golden" / "commit.ndjson")
    assert main(["check", "--quiet", "--suite", __suite__, trace]) == 0
    assert capsys.readouterr().out.rstrip().endswith(f"; suite {__suite__})")
    for command in (["check", trace], ["probe", "--list"], ["doctor"]):
        assert main([*command, "--suite", "2020.01"]) == 2
        assert f"expected the suite 2020.01, seen {__suite__}" in capsys.readouterr().err


def test_a_story_for_programs_names_the_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["story", "--json", str(shipped()["3.4.0/b-kill-leader"])]) == 0
    assert json.loads(capsys.readouterr().out)["tool"]["suite"] == __suite__


@pytest.mark.parametrize("columns", ["20", "200"])
def test_the_version_is_one_line_in_any_terminal(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script reads it; a long path of the package is no reason to break it."""
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    (line,) = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0
    assert line.startswith("tidegauge ")
    assert f", suite {__suite__}, " in line


def test_the_command_alone_shows_three_ways_in(capsys: pytest.CaptureFixture[str]) -> None:
    """It is no use of it, so that a script which forgot its arguments notices; each command that it shows is there."""
    assert main([]) == 2
    shown = capsys.readouterr().out
    for way in ("You run brokers.", "You write a broker.", "You change the protocol."):
        assert way in shown
    assert set(re.findall(r" {2,}tidegauge (\w+)", shown)) <= set(COMMANDS)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_can_complete_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", shell])
    assert ended.value.code == 0
    script = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in script] == []


def test_without_shtab_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 2
    assert "pip install 'tidegauge[completion]'" in capsys.readouterr().err


@pytest.mark.parametrize("language", LANGUAGES)
def test_init_writes_a_repository_to_begin_with(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a workflow and a list; it passes ten steps; a file that is there is not written over."""
    assert main(["init", language, str(tmp_path)]) == 0
    (command,) = re.findall(r"tidegauge drive --smoke -- (.*)", capsys.readouterr().out)
    assert (tmp_path / "known-failures.txt").is_file()
    assert (tmp_path / ".github" / "workflows" / "watermark.yml").is_file()
    if language == "python":
        command = command.replace("python", sys.executable).replace("adapter.py", str(tmp_path / "adapter.py"))
        assert main(["drive", "--quiet", "--smoke", "--", *command.split()]) == 0
    assert main(["init", language, str(tmp_path)]) == 2
    assert "expected a directory without" in capsys.readouterr().err
