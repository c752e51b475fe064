"""Paths as JUnit tests: their text. That they compile, fail and pass is measured by validation.kafka_tests."""

import json
import re
import shutil
import textwrap

import pytest

from tidegauge.cli.main import main
from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.broker.reference import reference as broker_reference
from tidegauge.drive.controller.contract import ClusterOpening
from tidegauge.drive.controller.findings import finding_cases
from tidegauge.drive.controller.reference import reference as controller_reference
from tidegauge.drive.java_tests.export import (
    FIXED,
    Origin,
    failure_tests,
    finding_names,
    finding_test,
    java_test,
    release_with,
    write,
)
from tidegauge.drive.java_tests.java_words import class_name, comment_lines, java_value
from tidegauge.drive.paths.unsafe_or_repaired import TELLING
from tidegauge.drive.runner.player import ReferenceNode
from tidegauge.drive.runner.run import run
from tidegauge.impl.releases import profile_named
from tidegauge.util.errors import UsageError
from validation.kafka_tests.__main__ import PAGE, RESULTS, result_table, results_of
from validation.kafka_tests.junit_runs import repairs

NEW = "4.3.1"
AS_KAFKA = broker_reference(profile_named(f"release-{NEW}"))


def body_of(text):
    """Return the test method of a class, without the indentation."""
    return textwrap.dedent(re.search(r"    @Test\n(.*?)\n    }\n", text, re.DOTALL)[1])


def test_a_test_of_a_broker_asserts_each_response_the_log_and_the_proposal():
    assert body_of(finding_test("F2", NEW).text) == textwrap.dedent(
        """\
        public void testBrokerF2() throws Exception {
            configRepository().setTopicConfig(topicPartition().topic(), "min.insync.replicas", "1");
            // AbstractPartitionTest keeps records for a second, and here hours pass.
            configRepository().setTopicConfig(topicPartition().topic(), "retention.ms", "-1");
            metadata(1, 0, 0, List.of(1, 2, 3));
            assertLog(0, 0, 0);
            assertEquals("0,0", ends(1));
            assertEquals("none", proposal());
            assertEquals("base 0", response(() -> append(1)));
            assertLog(1, 0, 0);
            assertEquals("0,1", ends(1));
            assertEquals("none", proposal());
            assertEquals("high watermark 0, log start 0, records []", response(() -> fetch(2, 0, 1, 0, false)));
            assertLog(1, 0, 0);
            assertEquals("none", proposal());
            // expected       Kafka 4.3.1
            // hw        0              1
            metadata(1, 2, 1, List.of(1, 2));
            assertLog(1, 0, 0);
            assertEquals("0,1 0,1 2,1", ends(3));
            assertEquals("none", proposal());"""
    )


def test_a_test_of_a_follower_lets_happen_what_happens_while_its_fetch_is_under_way():
    assert [line for line in body_of(finding_test("F1", "3.9.0").text).splitlines() if " //" not in line] == textwrap.dedent(
        """\
        public void testBrokerF1() {
            fetcher.setReplicaState(partition, PartitionState.apply(0));
            peer.setReplicaPartitionStateCallback(fetcher::replicaPartitionState);
            lead(0);
            assertLogEnd(0);
            append(0);
            assertLogEnd(1);
            follow(1);
            assertLogEnd(1);
            fetch("epoch 1, offset 1", () -> {
                lead(2);
                assertLogEnd(1);
                commit(1);
                assertLogEnd(1);
                follow(3);
                assertLogEnd(1);
                return response(99, 0, 0, 0);
            });
            assertLogEnd(1);
            assertEquals("epoch 3, offset 1", nextFetch());
            lead(4);
            assertLogEnd(1);"""
    ).splitlines()


def test_a_test_of_a_controller_asserts_each_error_and_each_changed_registration():
    body = body_of(finding_test("F12", NEW).text)
    assert body.splitlines()[1:3] == [
        '    assertError(Errors.NONE, () -> register(1, true, false, "A"));',
        '    assertError(Errors.NONE, () -> heartbeat(1, 0, Long.MAX_VALUE, false, false, ""));',
    ]
    assert body.endswith(
        """\
    assertError(Errors.NONE, () -> heartbeat(1, 0, Long.MAX_VALUE, false, false, ""));
    assertPartition("t", 0, new PartitionRegistration.Builder().
        setReplicas(new int[] {1}).
        setDirectories(dirs("1A")).
        setIsr(new int[] {1}).
        setElr(new int[] {2}).
        setLastKnownElr(new int[] {}).
        setAddingReplicas(new int[] {}).
        setRemovingReplicas(new int[] {}).
        setLeader(1).
        setLeaderRecoveryState(LeaderRecoveryState.RECOVERED).
        setLeaderEpoch(3).
        setPartitionEpoch(4));"""
    )


@pytest.mark.parametrize("name", finding_names())
def test_each_finding_has_a_test_that_names_it_and_where_the_release_differs(name):
    release = release_with(name)
    right, as_it_is = finding_test(name, release), finding_test(name, release, repaired=False)
    assert f"public class {right.name} " in right.text
    assert f"Kafka {release} differs after step" in right.text
    assert "differs" not in as_it_is.text
    assert right.path.parts[:4] in {("core", "src", "test", "java"), ("metadata", "src", "test", "java")}


def test_what_no_test_can_be_given_is_refused_by_name():
    def refused(path, difference=None):
        with pytest.raises(UsageError) as failure:
            java_test(BrokerCase(Opening(), path), AS_KAFKA, NEW, Origin("x"), difference)
        return str(failure.value)

    leads = ("metadata", 1, 0, 0, (1, 2))
    assert "`fetch_in_session`" in refused((leads, ("fetch_in_session", 2, 0, 0, -1, True, 0)))
    assert "`metadata` with the leader 2" in refused((("metadata", 2, 0, 0, (1, 2)),))
    assert "`crash`" in refused((leads, ("crash", 0, 0)))
    with pytest.raises(UsageError, match=r"a broker of 3\.9\.1, whose Partition"):
        finding_test("F2", "3.9.1")
    with pytest.raises(UsageError, match=r"a controller of 4\.1\.1, whose managers"):
        finding_test("F4", "4.1.1")
    with pytest.raises(UsageError, match=r"a follower of 4\.0\.0, whose fetcher thread"):
        finding_test("F1", "4.0.0")
    with pytest.raises(UsageError, match=r"a release that has F1; seen 4\.3\.1, .*: --kafka 3\.9\.0"):
        finding_test("F1", NEW)
    with pytest.raises(UsageError, match=r"expected one of F1, F2, .*; seen 'F99'"):
        finding_test("F99", NEW)


def test_a_difference_that_a_run_has_shown_becomes_a_test_and_another_a_line():
    right = broker_reference(profile_named(f"release-{NEW}+keeps_remote_leo=off"))
    shown = run(ReferenceNode(AS_KAFKA), [TELLING["keeps_remote_leo"]], right)
    (test,), refused = failure_tests(shown.failures, right, "4.5.0-SNAPSHOT")
    assert (test.name, refused) == ("BrokerDifference1MetadataTest", [])
    assert "The same as keeps_remote_leo=on" in " ".join(test.text.split())
    follows = BrokerCase(
        Opening(), (("metadata", 2, 0, 0, (1, 2)), ("fetch_response", 2, 0, 5, 0, ((0, 0, 0),), None, None))
    )
    wrong = AS_KAFKA.with_fault("hw-not-clamped")
    shown = run(ReferenceNode(wrong), [follows], AS_KAFKA)
    tests, (line,) = failure_tests(shown.failures, AS_KAFKA, NEW)
    assert not tests
    assert line.startswith("difference 1, fetch_response: --export-junit: expected a path")


def test_what_a_path_holds_ends_no_comment_and_no_literal():
    assert [*comment_lines("*/ class X { } /* \\u002a/")] == ["* / class X { } /* /u002a/"]
    assert (
        java_value('"; \\ é😀')
        == '"' + "".join(f"\\u{unit}" for unit in ("0022", "003b", "0020", "005c", "0020", "00e9", "d83d", "de00")) + '"'
    )
    assert (
        java_value((1, (True, None), "min.insync.replicas", 1 << 40))
        == 'List.of(1, List.of(true, null), "min.insync.replicas", Long.MAX_VALUE)'
    )
    assert class_name("*/ 9 lives") == "Path9LivesTest"


def test_tests_lie_as_in_kafkas_tree_or_in_a_file_named_as_the_class(tmp_path):
    test = finding_test("F4", NEW)
    assert write([test], tmp_path) == [tmp_path / "metadata/src/test/java/org/apache/kafka/controller/ControllerF4Test.java"]
    (file,) = write([test], tmp_path / "GhostTest.java")
    assert "public class GhostTest {" in file.read_text(encoding="utf-8")
    for place in ("a-ghost.java", "1.java"):
        with pytest.raises(UsageError, match="named as a class of Java"):
            write([test], tmp_path / place)
    with pytest.raises(UsageError, match="for 2; name a folder"):
        write([test, finding_test("F5", NEW)], tmp_path / "Two.java")


def test_the_command_writes_findings_and_starts_nothing(tmp_path, capsys):
    assert main(["drive", "--export-junit", str(tmp_path), "--scenario", "F4", "--scenario", "F2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert len([*tmp_path.rglob("*.java")]) == 2
    for more in (["--scenario", "F4", "--walks", "3"], ["--scenario", "F4", "--kafka", "3.4.1"], ["--", "true"]):
        assert main(["drive", "--export-junit", str(tmp_path), *more]) == 2
        assert "expected" in capsys.readouterr().err


def test_each_finding_has_a_repair_and_a_committed_result_that_is_as_it_should_be():
    assert {name.partition("-")[0] for name in finding_names()} == {*repairs(), *FIXED}
    rows = {row["name"]: row for row in json.loads(RESULTS.read_text(encoding="utf-8"))}
    assert [*rows] == [*finding_names()]
    assert all(row["fails"] and row["passes_as_it_is"] and row["passes_repaired"] for row in rows.values())
    assert result_table() in PAGE.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("javac")), reason="no Maven or no JDK")
@pytest.mark.parametrize("name", ["F1", "F2", "F12"])
def test_a_test_fails_on_the_release_and_passes_with_the_repair(name):
    (result,) = results_of([name])
    assert "expected" in result.fails
    assert result.passes_as_it_is
    assert result.passes_repaired


def test_a_path_on_which_nothing_differs_has_a_test():
    case = finding_cases(ClusterOpening(30))[0]
    text = java_test(case, controller_reference(profile_named(f"release-{NEW}")), NEW, Origin("as it is")).text
    assert "class AsItIsTest" in text
