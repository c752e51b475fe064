"""Third-party brokers: the page of the results, what must be looked up first, and that they end with this process.

A party that is not there (no Go, no package, no network to build it with) is skipped; `./run third-parties` has them all.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.drive.kafka_process.test_process import running_commands, soon
from tidegauge.drive.probe.connection import tcp
from tidegauge.drive.probe.run import CHECKS, probe, select_checks
from tidegauge.util.errors import UsageError
from validation.third_parties import run
from validation.third_parties.page import third_parties_page
from validation.third_parties.results import CheckResult, ThirdPartyResult, plain, read_results, write_results
from validation.third_parties.run import PARTIES
from validation.third_parties.running import running
from validation.third_parties.third_party import STARTERS, Reason, ThirdParty, go_starter, python_starter

DOCS_PAGE = Path(__file__).resolve().parents[2] / "docs" / "third-parties.md"
SERVES = """
import socket, time
one = socket.socket(); one.bind(("127.0.0.1", 0)); one.listen()
print(f"listens on 127.0.0.1:{one.getsockname()[1]}: toy 1.0 of tests", flush=True)
time.sleep(60)
"""


HOLDS = """
import time
from tests.validation.test_third_parties import toy
from validation.third_parties.running import running
with running(toy(program={program!r})) as one:
    print(one.port, flush=True)
    time.sleep(60)
"""


def toy(*reasons: Reason, program: str = SERVES) -> ThirdParty:
    return ThirdParty("toy", "A toy", "It is for tests.", lambda _: [sys.executable, "-S", "-c", program], reasons)


def result(*checks: CheckResult) -> ThirdPartyResult:
    return ThirdPartyResult("toy", "toy 1.0", "2026-01-02", 1, checks)


FENCED = CheckResult(
    "fencing.fetch-newer", "FENCE-01", "fail", "errorCode: expected UNKNOWN_LEADER_EPOCH (75); seen NONE (0)"
)
PASSES = CheckResult("acks.one", "APPEND-01", "pass", "")
UNOFFERED = CheckResult("epochs.current", "EPOCH-05", "not supported", "needs OffsetForLeaderEpoch version 2 or newer")
ALONE = CheckResult("epochs.every-epoch", "EPOCH-05", "undecided", "it takes two brokers, and there is one")

# ---------------------------------------------------------------------------------------------------------------------
# The page


def test_a_failure_stands_by_its_rule_with_its_reason_and_source() -> None:
    said = third_parties_page(
        [(toy(Reason(("fencing.*",), "It looks at no epoch.", "`toy.c` fetch")), result(FENCED, PASSES))]
    )
    assert "| A toy | toy 1.0 | 2026-01-02 | 2 | 1 | 1 | 0 | 0 | 0 |" in said
    assert "| FENCE-01 | It looks at no epoch. | `fencing.fetch-newer` | `toy.c` fetch |" in said
    assert "### What differs" in said
    assert "not claim\n" not in said


def test_what_they_do_not_claim_is_counted_and_told_apart() -> None:
    said = third_parties_page(
        [(toy(Reason(("fencing.*",), "No epochs.", "README: “no epochs”", claimed=False)), result(FENCED, PASSES))]
    )
    assert "| A toy | toy 1.0 | 2026-01-02 | 2 | 1 | 0 | 1 | 0 | 0 |" in said
    assert "### What it does not claim" in said
    assert "### What differs" not in said


def test_what_is_not_offered_and_what_is_undecided_is_no_difference() -> None:
    said = third_parties_page([(toy(), result(UNOFFERED, ALONE))])
    assert "| 2 | 0 | 0 | 0 | 1 | 1 |" in said
    assert f"* {ALONE.says}: `epochs.every-epoch`" in said


def test_a_failure_that_nobody_has_looked_up_is_said_to_be_so() -> None:
    assert "### Not looked into yet" in third_parties_page([(toy(), result(FENCED))])


def test_a_cell_holds_what_a_broker_wrote() -> None:
    odd = FENCED._replace(says="seen a|b\n<script>")
    assert "seen a\\|b &lt;script>" in third_parties_page([(toy(), result(odd))])


def test_the_page_is_made_of_what_is_kept() -> None:
    kept = {one.party: one for one in read_results()}
    assert DOCS_PAGE.read_text(encoding="utf-8") == third_parties_page([(party, kept[party.name]) for party in PARTIES])


def test_what_is_kept_is_about_the_checks_of_today() -> None:
    for one in read_results():
        assert [(check.id, check.rule) for check in one.checks] == [(check.id, check.rule) for check in CHECKS], one.party


def test_results_are_kept_as_they_were(tmp_path: Path) -> None:
    write_results([result(FENCED, PASSES), result(ALONE)], tmp_path / "kept.json")
    assert read_results(tmp_path / "kept.json") == [result(FENCED, PASSES), result(ALONE)]


def test_what_differs_from_run_to_run_is_not_kept() -> None:
    says = "Fetch to 127.0.0.1:4711: expected the response to request 17; seen one to 15"
    when = datetime(2026, 1, 2, tzinfo=UTC)
    assert plain(says, when) == "Fetch: expected the response to one request; seen one to another"
    now = int(when.timestamp() * 1000) + 17
    assert plain(f"expected 1600000000000; seen {now}", when) == "expected 1600000000000; seen the time of the run"
    assert plain(FENCED.says, when) == FENCED.says
    ids = "406f7930-029f-3be2-1b7b-8db38f093966", "b5983540-163b-bc04-be16-7b5ae7b8b3f6"
    reported = "told: expected ('{0}-0',); seen ('{1}-0', '{0}-0')"
    assert plain(reported.format(*ids), when) == reported.format("topic A", "topic B")


# ---------------------------------------------------------------------------------------------------------------------
# What must be looked up


def test_every_failure_that_is_kept_has_its_reason_and_every_reason_is_shown() -> None:
    kept = {one.party: one for one in read_results()}
    assert [line for party in PARTIES for line in run.complaints(party, kept[party.name])] == []


@pytest.mark.parametrize(
    ("reasons", "checks", "says"),
    [
        ((), (FENCED,), "fencing.fetch-newer: errorCode: expected"),
        ((Reason(("fencing.*",), "Once.", "-"),), (PASSES,), "no failing check needs this reason any more"),
        ((Reason(("*",), "All.", "-"), Reason(("fencing.*",), "Hidden.", "-")), (FENCED,), "fencing.*: no failing check"),
    ],
)
def test_a_failure_without_a_reason_and_a_reason_without_a_failure_are_complaints(
    reasons: Sequence[Reason], checks: Sequence[CheckResult], says: str
) -> None:
    (line,) = run.complaints(toy(*reasons), result(*checks))
    assert says in line


def test_the_command_fails_for_a_difference_that_nobody_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"of": result(PASSES)}
    for name, value in (("PARTIES", (toy(),)), ("PAGE", tmp_path / "page.md"), ("RESULTS_FILE", tmp_path / "kept.json")):
        monkeypatch.setattr(run, name, value)
    monkeypatch.setattr(run, "probe_party", lambda _party, _folder: found["of"])
    assert run.main([]) == 0
    found["of"] = result(FENCED)
    assert run.main(["toy"]) == 1
    assert "find the reason in the sources" in capsys.readouterr().out
    assert "Not looked into yet" in (tmp_path / "page.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        run.main(["nobody"])
    assert ended.value.code == 2


# ---------------------------------------------------------------------------------------------------------------------
# Starting and ending


def test_a_party_runs_as_long_as_it_is_asked_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with running(toy()) as one:
        assert one.version == "toy 1.0 of tests"
        socket.create_connection((one.host, one.port), 5).close()
        assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((one.host, one.port), 5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_party_ends_with_us_whatever_ends_us(number: int, tmp_path: Path) -> None:
    holds = HOLDS.format(program=SERVES + f"#{tmp_path}")
    holder = subprocess.Popen(
        [sys.executable, "-c", holds],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        text=True,
    )
    assert holder.stdout is not None
    port = int(holder.stdout.readline())
    holder.send_signal(number)
    holder.wait(30)
    holder.stdout.close()
    assert soon(lambda: not any(str(tmp_path) in command for command in running_commands()))
    assert soon(lambda: list(tmp_path.iterdir()) == [])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_party_that_does_not_come_up_is_told_with_its_last_words() -> None:
    with pytest.raises(UsageError, match="no such luck"), running(toy(program="print('no such luck')"), seconds=2.0):
        pass


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="expected the package no-such-package"):
        python_starter("toy", "no-such-package")(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="expected the command go on the PATH"):
        go_starter("kfake")(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("party", PARTIES, ids=lambda party: party.name)
def test_a_third_party_does_what_is_kept_of_it(party: ThirdParty, tmp_path: Path) -> None:
    try:
        party.command(tmp_path)
    except UsageError as missing:
        pytest.skip(str(missing).splitlines()[0])
    (kept,) = [one for one in read_results() if one.party == party.name]
    with running(party) as one:
        if one.version != kept.version:
            pytest.skip(f"{one.version} is here, {kept.version} is kept")
        found = probe(tcp(30.0), (one.host, one.port), 1, select_checks(["fencing", "acks", "append.leader-epoch"]))
    verdicts = {check.id: check.verdict for check in kept.checks}
    assert {outcome.check.id: outcome.verdict.value for outcome in found.outcomes}.items() <= verdicts.items()
    assert len(found.outcomes) > 10


def test_the_starter_in_go_is_formatted() -> None:
    if shutil.which("gofmt") is None:
        pytest.skip("no gofmt on the PATH")
    done = subprocess.run(["gofmt", "-l", "."], cwd=STARTERS / "kfake", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
