"""Every scenario goes as its file says, and says what its opening claims."""

from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.conformance.play.scenario import (
    BROKEN,
    HOLDS,
    UNSEEN,
    Block,
    Played,
    ScenarioError,
    Transcript,
    difference,
    parse,
    play,
    read,
    render,
    rewrite,
    run_scenario,
    shipped,
)
from tidegauge.traces.formats.ndjson import read as read_ndjson
from tidegauge.traces.formats.ndjson import write as write_ndjson
from tidegauge.util.errors import TidegaugeError

SCENARIOS = shipped()

HEAD = "# A claim.\n#\n# Rule under test: none. Expected: HOLDS.\n# Source: this test.\n"


@pytest.fixture(scope="module")
def played() -> dict[str, Played]:
    return {path.stem: run_scenario(path) for path in SCENARIOS}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, played: dict[str, Played], request: pytest.FixtureRequest) -> None:
    """What happens is what the file says, line by line."""
    one = played[path.stem]
    if request.config.getoption("--rewrite") and rewrite(one):
        pytest.fail(f"{path.name}: rewritten, review the difference")
    if one.diff:
        pytest.fail(f"{one.diff}\nIf this is right, run pytest --rewrite and review the difference.", pytrace=False)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_verdict_is_the_claimed_one(path: Path, played: dict[str, Played]) -> None:
    """Broken means that an invariant fails and that the judge sees why; holding means neither. Both are asked last.

    Unseen: an invariant fails and the judge cannot see it; the opening says why.
    """
    one = played[path.stem]
    check, judge = one.seen.blocks[-2:]
    assert (check.command, judge.command) == ("check", "judge")
    assert (check.output == ("all invariants hold",)) is (one.scenario.expected == HOLDS)
    assert one.judge_says.startswith("the judge rejects" if one.scenario.expected == BROKEN else "the judge accepts")
    opening = "\n".join(one.scenario.transcript.blocks[0].before)
    assert ("Why no rule is broken:" in opening) is (one.scenario.expected == UNSEEN)
    assert not any(line.startswith("error:") for block in one.seen.blocks for line in block.output)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_opening_names_a_twin_that_exists(path: Path) -> None:
    """A twin is a file beside it that differs in its first command."""
    scenario = read(path)
    opening = "\n".join(scenario.transcript.blocks[0].before)
    twins = [word.rstrip(",") for word in opening.split() if word.rstrip(",").endswith(".txt")]
    for twin in twins:
        assert (path.parent / twin).exists()
        assert read(path.parent / twin).transcript.blocks[0].command != scenario.transcript.blocks[0].command
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 150


def test_scenarios_show_what_breaks_and_what_holds(played: dict[str, Played]) -> None:
    """There are both kinds, and each broken one is the twin of one that holds."""
    broken = [one for one in played.values() if one.scenario.expected == BROKEN]
    assert len(broken) >= 4
    assert len(played) - len(broken) >= 8


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_is_a_trace(path: Path, played: dict[str, Played], tmp_path: Path) -> None:
    """What was played can be written as schema v1 and read back."""
    trace = played[path.stem].trace
    write_ndjson([trace], tmp_path / "scenario.ndjson")
    reading = read_ndjson(tmp_path / "scenario.ndjson")
    assert not reading.problems
    assert [(e.node, e.event, dict(e.fields)) for e in reading.traces[0].events] == [
        (e.node, e.event, dict(e.fields)) for e in trace.events
    ]


# ---------------------------------------------------------------------------------------------------------------------
# The form


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_rendering_gives_the_file_back(path: Path) -> None:
    """Comments and spacing survive a rewrite, byte for byte."""
    text = path.read_text(encoding="utf-8")
    assert render(parse(text)) == text


def test_a_wrong_line_is_told_as_a_difference_at_its_line(tmp_path: Path) -> None:
    """The reader sees file and line of the first block that differs, and both versions of it."""
    path = tmp_path / "wrong.txt"
    path.write_text(
        f"{HEAD}\ncluster brokers=2\n----\nok\n\nwrite b1\n----\nb1     append 0a@0, leo 0->2\n", encoding="utf-8"
    )
    one = run_scenario(path)
    assert not one.passed
    assert one.diff.startswith(f"{path}:10: write b1: expected another output")
    assert "-b1     append 0a@0, leo 0->2" in one.diff
    assert "+b1     append 0a@0, leo 0->1" in one.diff


def test_rewriting_changes_outputs_only_and_once(tmp_path: Path) -> None:
    """After a rewrite the file passes, and its comments and commands are what they were."""
    path = tmp_path / "new.txt"
    path.write_text(f"{HEAD}\ncluster brokers=2\n----\n\n# Now.\nwrite b1\n----\n", encoding="utf-8")
    assert rewrite(run_scenario(path))
    assert path.read_text(encoding="utf-8") == (
        f"{HEAD}\ncluster brokers=2\n----\nok\n\n# Now.\nwrite b1\n----\nb1     append 0a@0, leo 0->1\n"
    )
    assert not rewrite(run_scenario(path))


def test_a_scenario_goes_by_the_name_that_the_list_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Or by what it shows, or by its file; one that had to be written is counted as that."""
    assert main(["scenario", SCENARIOS[0].stem, "F2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{SCENARIOS[0].stem}: ")
    assert len(said.splitlines()) >= 3
    assert main(["scenario", "nope"]) == 2
    assert "a name that `tidegauge scenario` lists; seen nope" in capsys.readouterr().err
    mine = tmp_path / "mine.txt"
    mine.write_text(SCENARIOS[0].read_text(encoding="utf-8").replace("\nok\n", "\nno\n"), encoding="utf-8")
    assert main(["scenario", "--rewrite", str(mine)]) == 1
    assert "1 rewritten: review the difference" in capsys.readouterr().out
    assert main(["scenario", "--rewrite", str(mine)]) == 0
    assert capsys.readouterr().out.endswith("1 of 1 scenarios go as their files expect\n")


def test_no_difference_is_no_text() -> None:
    """Equal transcripts differ nowhere."""
    one = Transcript((Block("show", ("x",)),))
    assert difference(one, one, "f") == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{HEAD}\nwrite b1\nb1 append\n", ":7: expected ---- below the command 'write b1', seen 'b1 append'"),
        (f"{HEAD}\nwrite b1\n", ":7: expected ---- below the command 'write b1', seen the end"),
        (HEAD, "expected commands, seen none"),
        ("cluster brokers=2\n----\nok\n", ":1: expected a claim"),
        ("# A claim.\n# Rule under test: x. Expected: MAYBE.\n# Source: y.\n\nshow\n----\n", ":1: expected a claim"),
    ],
)
def test_what_is_no_scenario_is_refused_with_its_place(text: str, says: str, tmp_path: Path) -> None:
    """Never a traceback: expected, seen, file and line."""
    path = tmp_path / "bad.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match="expected") as raised:
        run_scenario(path)
    assert says in str(raised.value)
    assert str(path) in str(raised.value)
    assert isinstance(raised.value, TidegaugeError)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Absent, or no text."""
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    for name in ("absent.txt", "binary.txt"):
        with pytest.raises(ScenarioError, match="expected a transcript in UTF-8"):
            run_scenario(tmp_path / name)


# ---------------------------------------------------------------------------------------------------------------------
# By hand


def test_a_session_by_hand_is_a_transcript_that_replays() -> None:
    """What was typed and seen can be kept: as blocks it says the same again."""
    said: list[str] = []
    transcript = play(["write b1\n", "# a note", "fetch b2", "fetch b2", "shw", "show", "exit", "write b1"], said.append)
    assert [block.command for block in transcript.blocks] == [
        "cluster brokers=3",
        "write b1",
        "fetch b2",
        "fetch b2",
        "shw",
        "show",
    ]
    assert "b1     append 0a@0, leo 0->1" in said
    assert any(line.startswith("error: expected one of cluster, ") for line in said)
    again: list[str] = []
    play([block.command for block in transcript.blocks[1:]], again.append)
    assert again == said
    assert parse(render(transcript)).blocks[1].output == transcript.blocks[1].output
