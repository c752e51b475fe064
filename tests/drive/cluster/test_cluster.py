"""A cluster of driven brokers of several releases: what one is given is what the others said."""

import sys
from collections import Counter

import pytest

from tidegauge.cli.main import main
from tidegauge.drive.broker.known_bugs import bug_named
from tidegauge.drive.broker.reference import reference, reference_with
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.cluster.cluster_findings import ELSEWHERE, SCRIPTS, ControlledBuilder, finding_path, finding_text
from tidegauge.drive.cluster.cluster_run import ClusterMember, ClusterRun, cluster_text, play_cluster
from tidegauge.drive.cluster.cluster_walks import ClusterPath, MemberModel, PathBuilder, cluster_walks
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.controller.contract import ClusterOpening
from tidegauge.drive.controller.findings import SHOWN_BY
from tidegauge.drive.controller.reference import reference as controller_reference
from tidegauge.drive.runner.player import ReferenceNode
from tidegauge.drive.transports.stdio import StdioNode
from tidegauge.impl.controller.features import IBP_4_3_IV0
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile
from tidegauge.impl.releases import profile_named
from tidegauge.util.errors import UsageError
from tidegauge.util.java import find_java

RELEASES = ("3.4.0", "3.9.1", "4.3.1")
LATEST = profile_named("4.3.1")


def models(*names: str) -> list[MemberModel]:
    return [MemberModel(reference(profile_named(name)), EVERYTHING) for name in names]


def member(name: str, really: Profile | None = None, reports: frozenset[str] = EVERYTHING.reports) -> ClusterMember:
    """A member of a release by its name, which is in truth of another profile if one is given."""
    profile = profile_named(name)
    capabilities = Capabilities(name, EVERYTHING.can, reports)
    return ClusterMember(name, ReferenceNode(reference(really or profile), capabilities), reference(profile))


def run_of(*members: ClusterMember, count: int = 40) -> ClusterRun:
    paths = cluster_walks([one.model for one in members], LATEST, 1, count)
    return play_cluster(members, paths)


def test_a_cluster_of_three_releases_conforms() -> None:
    """Every value that one was given is what another reported."""
    run = run_of(*map(member, RELEASES))
    assert run.exit_code == 0
    assert run.handed > 1_000
    assert run.unreported == 0
    text = cluster_text(run)
    assert f"{run.handed:,} requests, responses and proposals that a broker was given are what another said" in text
    assert text.endswith("the cluster of 3.4.0, 3.9.1, 4.3.1 CONFORMS: no step differs")


def test_walks_do_what_clusters_do() -> None:
    """Every broker leads and follows, truncates, joins, crashes; the same seed gives the same walks."""
    walks = cluster_walks(models(*RELEASES), LATEST, 1, 60)
    assert walks == cluster_walks(models(*RELEASES), LATEST, 1, 60)
    assert walks != cluster_walks(models(*RELEASES), LATEST, 2, 60)
    taken = Counter((one.member, one.step[0]) for walk in walks for one in walk.steps)
    for name in ("metadata", "append", "fetch", "fetch_response", "lose_response", "lag", "crash", "stop"):
        assert {taken[number, name] > 0 for number in range(3)} == {True}, name
    steps = [one.step for walk in walks for one in walk.steps]
    assert any(step[0] == "fetch_response" and step[6] is not None for step in steps)
    assert any(step[0] == "alter_partition_response" and step[1] == 0 for step in steps)
    assert any(step[0] == "alter_partition_response" and step[1] != 0 for step in steps)


def test_a_member_that_is_of_another_release_is_told_by_name() -> None:
    """With its release, the step of the cluster, the rule, and the switch that it has otherwise."""
    wrong = member("4.0.1", LATEST.switched({"response_epoch_checked": False}))
    run = run_of(member("4.0.1"), wrong, member("4.3.1"), count=150)
    assert run.exit_code == 1
    assert {first.member for first in run.differences} == {1}
    text = cluster_text(run)
    assert "broker 2, 4.0.1, DIFFERS on" in text
    assert "rule      accepts_fetch_response" in text
    assert "same as   response_epoch_checked=off" in text


def test_a_known_bug_of_a_member_is_told() -> None:
    """A follower that does not clamp the high watermark, in the middle of a cluster."""
    wrong = reference_with(bug_named("hw-not-clamped"))
    run = run_of(member("4.3.1"), member("3.9.1")._replace(node=ReferenceNode(wrong)), count=20)
    assert run.exit_code == 1
    assert "hw-not-clamped" in cluster_text(run)


def test_what_comes_behind_a_difference_counts_for_nobody() -> None:
    """Two members are wrong: each path is the fault of the one that differs first."""
    off = {"truncation_lowers_hw": False, "response_epoch_checked": False, "batch_epoch_filter": False}
    wrong = FETCH_TRUNCATION.switched(off)
    run = run_of(member("4.3.1", wrong), member("4.3.1", wrong), member("4.3.1"), count=80)
    assert {first.member for first in run.differences} == {0, 1}
    for first in run.differences:
        assert first.path.steps[first.at - 1].member == first.member
        assert first.path.cases[first.member].path[first.difference.at - 1] == first.path.steps[first.at - 1].step


def test_a_member_that_reports_little_is_counted_apart() -> None:
    """What it does not report nobody can compare with what the others were given."""
    run = run_of(member("4.3.1", reports=frozenset({"leo", "hw"})), member("4.3.1"), count=10)
    assert run.exit_code == 0
    assert run.unreported > 0
    assert "are not reported" in cluster_text(run)


def test_a_path_of_the_cluster_is_built_of_what_members_said() -> None:
    """One record goes from the producer to the follower, and the high watermark comes back."""
    builder = PathBuilder(models("3.9.1", "4.3.1"), LATEST)
    assert builder.read_metadata(0)
    assert not builder.read_metadata(0)
    assert not builder.handle(1, 0, may_join=True)
    assert builder.read_metadata(1)
    assert builder.append(0)
    assert not builder.append(1)
    for _ in range(2):
        assert builder.handle(1, 0, may_join=True)
        assert builder.respond(1, 0)
        assert not builder.respond(1, 0)
    path: ClusterPath = builder.path()
    assert path.steps[-1].step == ("fetch_response", 2, 0, 0, 0, (), None, None)
    assert [source.field for source in path.steps[-1].sources] == ["result"]
    assert builder.states[0].broker.partition.log.hw == 1
    assert path.place(1, 1) == 2


@pytest.mark.parametrize("ends", ["crash", "stop"])
def test_a_process_that_ends_loses_its_session(ends: str) -> None:
    """The controller takes it out of the ISR, and another leads."""
    builder = PathBuilder(models("3.9.1", "4.3.1"), LATEST)
    for number in (0, 1):
        builder.read_metadata(number)
    assert builder.crash(0, 0) if ends == "crash" else builder.stop(0)
    assert builder.image.leader == 1
    assert builder.request(1, 0) is not None


LOST = "LOST: a record that was acknowledged, or shown to consumers, is not there"


@pytest.mark.parametrize(
    ("finding", "names", "loses"),
    [
        ("F1", ("3.9.0", "4.3.1"), True),
        ("F1", ("3.9.1", "3.9.0"), False),
        ("F2", ("4.3.1", "4.3.1", "4.3.1"), True),
        ("F2", ("3.9.1", "4.3.1", "4.3.1"), True),
        ("F2", ("repaired", "4.3.1", "4.3.1"), False),
        ("F3", ("4.3.1", "4.3.1", "4.3.1"), True),
    ],
)
def test_a_finding_ends_with_the_read_that_lacks_the_record(finding: str, names: tuple[str, ...], loses: bool) -> None:
    """It takes one broker that has it, the first, whatever the others are."""
    members = [member(name) for name in names]
    run = play_cluster(members, [finding_path(finding, [one.model for one in members], LATEST).path])
    assert run.exit_code == 0
    text = finding_text(run)
    assert (LOST in text) == loses
    assert ("nothing is lost" in text) == (not loses)
    if finding != "F1" and loses:
        assert f"acknowledged: the record at offset 0, by broker 1 ({names[0]}), with acks=all" in text
        assert "its log ends at 0; the latest offset for a consumer is 0" in text


def test_a_finding_on_a_broker_that_has_not_the_bug_differs() -> None:
    """The outcome is read from what the broker reports: here nothing is lost, and the step is told."""
    members = [member("4.3.1", LATEST.switched({"keeps_remote_leo": False})), member("4.3.1"), member("4.3.1")]
    run = play_cluster(members, [finding_path("F2", [one.model for one in members], LATEST).path])
    assert run.exit_code == 1
    assert "broker 1 was not given what follows" in finding_text(run)
    assert "same as   keeps_remote_leo=off" in cluster_text(run)


WITH_ELR = ClusterOpening(IBP_4_3_IV0)
UNREADABLE = "UNREADABLE: a record that was acknowledged is in the logs, nobody leads, and nobody is elected cleanly"


@pytest.mark.parametrize(("finding", "ends"), [("F5", UNREADABLE), ("F9", LOST), ("F11", LOST), ("F13", UNREADABLE)])
def test_a_finding_of_the_controller_ends_with_the_read_on_brokers(finding: str, ends: str) -> None:
    """The brokers read what the controller of the reference has written, and their proposals are its steps."""
    members = [member("4.3.1"), member("4.3.1")]
    path, control, steps = finding_path(finding, [one.model for one in members], LATEST, WITH_ELR)
    run = play_cluster(members, [path])
    assert run.exit_code == 0
    text = finding_text(run, steps)
    assert ends in text
    assert "with acks=all" in text
    assert control is not None
    assert text.count("controller: ") == len(control.path)
    read = [one.step[1:4] for one in path.steps if one.step[0] == "metadata"]
    written = [row["t-0"] for report in controller_reference(LATEST).reports(control) if (row := report["partitions"])]
    assert {step[2] for step in read} <= {row["partition_epoch"] for row in written}


@pytest.mark.parametrize(("finding", "leads"), [("F5", 0), ("F9", -1), ("F11", 1), ("F13", 0)])
def test_a_controller_that_has_it_repaired_loses_nothing(finding: str, leads: int) -> None:
    """After the same script who leads has what was acknowledged, or nobody leads who has not; the finding is refused."""
    repaired, members = LATEST.switched({SHOWN_BY[finding]: False}), [member("4.3.1"), member("4.3.1")]
    modelled = [one.model for one in members]
    for controller, opening in ((repaired, WITH_ELR), (LATEST, WITH_ELR._replace(elr=0))):
        with pytest.raises(UsageError, match="name releases with both"):
            finding_path(finding, modelled, controller, opening)
    minimum, script = SCRIPTS[finding]
    builder = ControlledBuilder(modelled, repaired, WITH_ELR, minimum)
    assert [*script(builder)]
    run = play_cluster(members, [builder.path()])
    acknowledged = [base for report in run.reports[0][0] for base, _ in report["produced"]]
    assert builder.image.leader == leads
    # With F11 repaired the proposal is refused, and nothing is acknowledged.
    assert len(acknowledged) == {"F9": 2, "F11": 0}.get(finding, 1)
    assert leads < 0 or all(base < builder.states[leads].broker.partition.log.end for base in acknowledged)


@pytest.mark.parametrize(
    ("finding", "says"),
    [
        ("F4", "never reassigned.*--controller --scenarios"),
        ("F8", "no log directory that fails"),
        ("F99", "seen F99; a controller alone"),
        ("F3", "releases that have it"),
    ],
)
def test_a_finding_that_no_broker_has_is_refused(finding: str, says: str) -> None:
    """With what to do instead."""
    with pytest.raises(UsageError, match=says):
        finding_path(finding, models("skips-equal", "4.3.1", "4.3.1"), LATEST, WITH_ELR)
    assert {*SCRIPTS, *ELSEWHERE} == {f"F{number}" for number in range(4, 14)}


@pytest.mark.parametrize(
    "words",
    [
        ["--cluster", "4.3.1"],
        ["--cluster", "4.3.1", "4.3.1", "--smoke"],
        ["--cluster", "4.3.1", "4.3.1", "--profile", "safe"],
        ["--finding", "F2"],
    ],
)
def test_what_makes_no_cluster_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Before a broker is started."""
    assert main(["drive", "--quiet", *words]) == 2
    assert "expected --cluster" in capsys.readouterr().err or words[0] == "--finding"


def test_an_adapter_in_another_process_is_a_member() -> None:
    """By its stdin and stdout, as any driven program."""
    command = [sys.executable, "-m", "tidegauge.drive.transports.serve", "--profile", "3.9.1"]
    with StdioNode(command) as node:
        adapter = ClusterMember("adapter", node, reference(profile_named("3.9.1")))
        assert run_of(member("4.3.1"), adapter, member("4.3.1"), count=10).exit_code == 0


@pytest.mark.long
@pytest.mark.parametrize("finding", [*SCRIPTS])
def test_an_unmodified_controller_and_brokers_show_a_finding(finding: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What the brokers read is what the controller has written: neither differs."""
    find_java()
    assert main(["drive", "--quiet", "--cluster", "4.3.1", "4.3.1", "4.3.1", "--finding", finding]) == 0
    text = capsys.readouterr().out
    assert "Kafka 4.3.1 (controller) CONFORMS" in text
    assert "the cluster of 2 of Kafka 4.3.1 CONFORMS: no step differs" in text
    assert (LOST if finding in {"F9", "F11"} else UNREADABLE) in text


@pytest.mark.long
@pytest.mark.parametrize("words", [["--walks", "24"], ["--finding", "F2"], ["--finding", "F3"]])
def test_unmodified_brokers_of_two_releases_are_a_cluster(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """3.9.1 beside two of 4.3.1: no step differs, and the findings end as they do in the model."""
    find_java()
    assert main(["drive", "--quiet", "--cluster", "3.9.1", "4.3.1", "4.3.1", *words]) == 0
    text = capsys.readouterr().out
    assert "the cluster of Kafka 3.9.1, 2 of Kafka 4.3.1 CONFORMS: no step differs" in text
    assert (LOST in text) == ("--finding" in words)
