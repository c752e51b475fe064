"""What is a loss and what is none, to the offset; what is not known is not told."""

import io

import pytest

from tests.story.conftest import Telling, log
from tidegauge.cli.main import main
from tidegauge.story.sentences import headline
from tidegauge.story.story import Story

FETCHER = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0]"
TRUNCATES = (
    f"{FETCHER} Truncating partition x-0 with TruncationState(offset=700, completed=true) due to leader epoch and "
    "offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=4, endOffset=700)"
)
UNCLEAN = (
    "[QuorumController id=9] UNCLEAN partition change for x-0: isr: [1] -> [2], leader: 1 -> 2, leaderRecoveryState: "
    "RECOVERED -> RECOVERING, leaderEpoch: 4 -> 5, partitionEpoch: 5 -> 6"
)
SHRINK = (
    "[Partition x-0 broker=1] Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 900, endOffset: 950). Out of sync "
    "replicas: (brokerId: 2, endOffset: 700)."
)


def leads(node: int, epoch: int, offset: int, high_watermark: int, isr: str) -> str:
    return (
        f"[Broker id={node}] Leader x-0 with topic id Some(HhPpDbsLQCqkVYGkSVHmWA) starts at leader epoch {epoch} from "
        f"offset {offset} with partition epoch {epoch}, high watermark {high_watermark}, ISR [{isr}], adding replicas [] . "
    )


def follows(node: int, leader: int, epoch: int, offset: int, high_watermark: int) -> str:
    return (
        f"[Broker id={node}] Follower x-0 starts at leader epoch {epoch} from offset {offset} with partition epoch {epoch} "
        f"and high watermark {high_watermark}. Current leader is {leader}. Previous leader None."
    )


def test_what_the_new_leader_lacks_is_lost_though_the_old_one_is_still_away(telling: Telling) -> None:
    story = telling(log(leads(1, 4, 500, 500, "1,2"), SHRINK, UNCLEAN, leads(2, 5, 700, 700, "2")))
    assert [(loss.first, loss.end, loss.committed, loss.why, loss.allowed) for loss in story.losses] == [
        (700, 900, "yes", "unclean election", True)
    ]
    assert story.losses[0].copies == [1]
    assert "keep the folder x-0" in str(story.losses[0].do)


def test_the_copy_is_gone_once_it_was_truncated(telling: Telling) -> None:
    lines = (
        leads(1, 4, 500, 500, "1,2"),
        SHRINK,
        UNCLEAN,
        leads(2, 5, 700, 700, "2"),
        follows(1, 2, 5, 950, 900),
        TRUNCATES,
    )
    story = telling(log(*lines))
    assert [(loss.first, loss.end, loss.committed) for loss in story.losses] == [(700, 900, "yes"), (900, 950, "no")]
    assert [loss.copies for loss in story.losses] == [[], []]
    assert story.losses[0].nodes == [1]


def test_the_word_unclean_alone_is_no_loss(telling: Telling) -> None:
    story = telling(log(leads(1, 4, 700, 700, "1,2"), UNCLEAN, leads(2, 5, 700, 700, "2"), follows(1, 2, 5, 700, 700)))
    assert story.losses == []


def test_a_truncation_of_which_no_line_says_from_where_has_no_size(telling: Telling) -> None:
    story = telling(log("[UnifiedLog partition=x-0, dir=/d] Truncating to offset 700", leads(1, 9, 900, 900, "1")))
    assert story.losses == []
    loss = telling(log(TRUNCATES)).losses[0]
    assert (loss.first, loss.end, loss.records, loss.at_least, loss.committed, loss.allowed) == (
        None,
        None,
        None,
        1,
        "unknown",
        None,
    )
    assert "Follower x-0 starts at" in str(loss.missing_line)


def test_a_reset_to_where_retention_left_the_leader_is_no_loss(telling: Telling) -> None:
    story = telling(
        log(
            follows(1, 2, 5, 120, 120),
            f"{FETCHER} Truncate fully and reset fetch offset for partition x-0 from 120 to the current leader's start "
            "offset 786",
            "[UnifiedLog partition=x-0, dir=/d] Truncate and start at offset 786, logStartOffset: 786",
            f"{FETCHER} Current offset 120 for partition x-0 is out of range, which typically implies a leader change. "
            "Reset fetch offset to 786",
        )
    )
    assert story.losses == []
    assert [
        (one.kind, one.fields["from"], one.fields["to"], one.fields["times"]) for one in story.entries if one.kind == "reset"
    ] == [("reset", 120, 786, 1)]


FELL = (
    "[UnifiedLog partition=x-0, dir=/d] Non-monotonic update of high watermark from (offset=5800 segment=[0:1]) to "
    "(offset=3100 segment=[-1:-1]) (kafka.log.UnifiedLog)"
)


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        ((UNCLEAN,), "do not tell: x-0: 2026-01-01 00:00:00,000 broker 2 was elected UNCLEANLY"),
        ((UNCLEAN, leads(2, 5, 700, 700, "2")), "the log of another replica ended"),
        ((FELL,), "the lines `Truncating ..` of that broker"),
        (("[UnifiedLog partition=x-0, dir=/d] Truncating to offset 700 (kafka.log.UnifiedLog)",), "ended before"),
        ((leads(1, 4, 700, 700, "1,2"), UNCLEAN, leads(2, 5, 700, 700, "2")), "No loss of data is told"),
    ],
)
def test_what_may_have_cost_records_is_not_called_no_loss(lines: tuple[str, ...], first: str, telling: Telling) -> None:
    story = telling(log(*lines))
    assert story.losses == []
    assert first in headline(story)[0]


def test_the_truncation_of_a_log_that_moves_to_another_directory_is_none_of_the_replica(telling: Telling) -> None:
    log_line = "[UnifiedLog partition=x-0, dir=/d2] Truncating to offset 700 (kafka.log.UnifiedLog)"
    future_line = TRUNCATES.replace(FETCHER, "[ReplicaAlterLogDirsThread-0]:") + " (kafka.server.ReplicaAlterLogDirsThread)"
    assert [one.kind for one in telling(log(future_line, log_line)).entries] == []
    assert [one.kind for one in telling(log(TRUNCATES, log_line)).entries] == ["truncated"]


def test_the_same_invalid_records_again_are_one_entry(telling: Telling) -> None:
    found = f"{FETCHER} Found invalid messages during fetch for partition x-0 offset {{}}"
    story = telling(log(found.format(88), found.format(88), found.format(91)))
    assert [(one.fields["offset"], one.fields["times"]) for one in story.entries] == [(88, 2), (91, 1)]


def test_what_is_piped_into_check_is_told_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = log(TRUNCATES, follows(1, 2, 4, 700, 700)).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    main(["check", "-"])
    assert capsys.readouterr().out.startswith("Records were removed: at least 1 record of x-0, from broker 1")


def test_what_a_follower_copies_again_is_no_loss(telling: Telling) -> None:
    story = telling(
        log(
            "Kafka version : 0.10.2.2 (org.apache.kafka.common.utils.AppInfoParser)",
            "Completed load of log x-0 with 1 log segments and log end offset 400 in 46 ms (kafka.log.Log)",
            "[ReplicaFetcherManager on broker 1] Removed fetcher for partitions x-0 (kafka.server.ReplicaFetcherManager)",
            "Truncating log x-0 to offset 0. (kafka.log.Log)",
        )
    )
    assert [(one.fields["from"], one.fields["to"], one.basis) for one in story.entries if one.kind == "truncated"] == [
        (400, 0, "high watermark")
    ]
    assert story.losses == []


def test_a_follower_above_whose_own_high_watermark_records_are_cut_cannot_tell_that_none_was_committed(
    telling: Telling,
) -> None:
    """It lags behind its leader's: only a clean election, or that it led itself, tells."""
    truncates = (follows(1, 2, 5, 950, 800), TRUNCATES)

    def above(*before: str) -> str:
        return next(loss.committed for loss in telling(log(*before, *truncates)).losses if loss.first == 800)

    assert above(follows(1, 3, 4, 500, 500)) == "unknown"
    assert above(leads(1, 4, 500, 500, "1,2")) == "no"
    assert above(leads(1, 4, 900, 500, "1,2")) == "unknown"
    assert above(leads(1, 3, 500, 500, "1,2"), follows(1, 3, 4, 500, 500)) == "unknown"


def test_a_log_that_was_loaded_before_its_broker_followed_does_not_say_where_it_led_from(telling: Telling) -> None:
    """To 0.10 no line says where a leader begins: only what it loaded just before."""
    loaded = "Completed load of log x-0 with 1 log segments and log end offset {} in 3 ms (kafka.log.Log)"
    elected = (
        "Broker {} cached leader info (LeaderAndIsrInfo:(Leader:2,ISR:2,LeaderEpoch:1,ControllerEpoch:1),ReplicationFactor:2"
        "),AllReplicas:1,2) for partition [x,0] in response to UpdateMetadata request sent by controller 3 epoch 1"
    )
    follows_again = "Truncating log x-0 to offset {}. (kafka.log.Log)"
    becomes = "[ReplicaFetcherManager on broker {}] Removed fetcher for partitions x-0 (kafka.server.ReplicaFetcherManager)"

    def files(*before: str) -> dict[str, str]:
        other = log(loaded.format(900), "", becomes.format(1), "", follows_again.format(700))
        return {"broker-1/server.log": other, "broker-2/server.log": log(*before, elected.format(2))}

    at_once = telling(files(loaded.format(500)))
    assert [(loss.first, loss.end) for loss in at_once.losses] == [(700, 900)]
    followed = telling(files(loaded.format(500), becomes.format(2), follows_again.format(500)))
    assert followed.losses == []


SIGNALS = "Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)"
DIRECTORY = "Log directory /d not found, creating it. (kafka.log.LogManager)"
EXPANDS = "[Partition x-0 broker={}] Expanding ISR from {} to 1,2 (kafka.cluster.Partition)"


def lost(story: Story) -> list[str]:
    return [entry.kind for entry in story.entries if entry.kind == "replica_lost"]


def test_lines_that_are_there_twice_are_no_second_start(telling: Telling) -> None:
    begins = log(EXPANDS.format(1, 1), SIGNALS)
    made = f"[2026-01-01 00:00:09,000] INFO {DIRECTORY}\n"
    assert lost(telling(begins + begins.splitlines(keepends=True)[1] + made)) == []
    assert lost(telling(begins + begins.splitlines(keepends=True)[1].replace("01,000", "05,000") + made)) == ["replica_lost"]


def test_a_copy_of_a_file_without_times_is_no_second_start(telling: Telling) -> None:
    once = f"INFO {EXPANDS.format(1, 1)}\nINFO {SIGNALS}\nINFO {DIRECTORY}\n"
    assert lost(telling({"n1/server.log": once, "copy/server.log": once})) == []


def test_a_rotated_part_of_two_brokers_is_not_of_the_one_that_it_names(telling: Telling) -> None:
    part = log(EXPANDS.format(1, 1), SIGNALS, SIGNALS, DIRECTORY)
    assert lost(telling({"server.log.1": part})) == ["replica_lost"]
    assert lost(telling({"server.log.1": part, "server.log": log(EXPANDS.format(2, 2))})) == []


def test_a_log_that_is_made_in_another_directory_is_not_known_to_be_lost(telling: Telling) -> None:
    first, same, other = (
        f"Created log for partition x-0 in {directory}/x-0 with properties {{}} (kafka.log.LogManager)"
        for directory in ("/d", "/d", "/e")
    )
    assert lost(telling(log(EXPANDS.format(1, 1), SIGNALS, first, SIGNALS, same))) == ["replica_lost"]
    assert lost(telling(log(EXPANDS.format(1, 1), SIGNALS, first, SIGNALS, other))) == []


@pytest.mark.parametrize("between", [leads(3, 5, 600, 600, "3"), ""])
def test_who_was_followed_meanwhile_may_have_committed_more(telling: Telling, between: str) -> None:
    """A replica that led once has the high watermark of whoever it followed since, or a lower one."""
    ends = follows(1, 2, 6 if between else 5, 900, 650)
    story = telling(log(leads(1, 4, 500, 500, "1"), *([between] if between else []), ends, TRUNCATES))
    assert [loss.committed for loss in story.losses] == ["unknown" if between else "no"]
    skipped = telling(log(leads(1, 4, 500, 500, "1"), follows(1, 2, 6, 900, 650), TRUNCATES))
    assert [loss.committed for loss in skipped.losses] == ["unknown"]


def test_a_log_is_not_loaded_with_more_than_it_has(telling: Telling) -> None:
    loads = (
        "Completed load of Log(dir=/d/x-0, topic=x, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, "
        "logEndOffset=0)"
    )
    again = "[Partition x-0 broker=1] Log loaded for partition x-0 with initial high watermark 120"
    assert [entry.fields["high_watermark"] for entry in telling(log(loads, again)).entries if entry.kind == "loaded"] == [
        None
    ]


def test_a_log_that_is_cut_below_a_high_watermark_had_grown_up_to_it(telling: Telling) -> None:
    no_effect = "[UnifiedLog partition=x-0, dir=/d] Truncating to 0 has no effect as the largest offset in the log is -1"
    below = "[UnifiedLog partition=x-0, dir=/d] Truncating x-0 to offset 0 below high watermark 10"
    release = "Kafka version: 4.0.0 (org.apache.kafka.common.utils.AppInfoParser)"
    story = telling(log(release, no_effect, below).replace("INFO [UnifiedLog", "WARN [UnifiedLog"))
    last = [entry.fields for entry in story.entries if entry.kind == "truncated"][-1]
    assert (last["from"], last["high_watermark"], last["relation"]) == (None, 10, "below")


def test_what_comes_after_a_truncation_says_nothing_of_it_where_lines_have_no_times(telling: Telling) -> None:
    before = leads(1, 4, 500, 500, "1"), leads(3, 5, 600, 600, "3"), follows(1, 2, 6, 900, 650), TRUNCATES
    dated = log(*before, leads(1, 7, 700, 700, "1"), follows(1, 2, 8, 710, 705))
    undated = "".join(f"{line[26:]}\n" for line in dated.splitlines())
    assert undated.startswith("INFO [Broker")
    assert [loss.committed for loss in telling(dated).losses] == [loss.committed for loss in telling(undated).losses]


def test_an_older_leader_says_nothing_of_the_one_that_is_followed(telling: Telling) -> None:
    """That of epoch 4 was elected cleanly; of the one of epoch 5, which the replica truncates to, no line tells."""
    elected = (
        "[QuorumController id=9] partition change for x-0: isr: [1, 3] -> [3], leader: 1 -> 3, leaderEpoch: 3 -> 4, "
        "partitionEpoch: 5 -> 6"
    )
    follower = follows(1, 3, 4, 900, 650), follows(1, 2, 5, 900, 650), TRUNCATES
    assert [loss.committed for loss in telling(log(elected, *follower)).losses] == ["unknown"]


MADE = "Created log for partition x-0 in /d/x-0 with properties {} (kafka.log.LogManager)"


def emptied(node: int, *behind: str) -> dict[str, str]:
    """Broker 1 leads up to 900 of 950 alone, and starts again without its disk; what it prints then is in both files."""
    return {
        "n1/server.log": log(SIGNALS, MADE, leads(1, 4, 500, 500, "1,2"), SHRINK, SIGNALS, MADE, leads(1, 4, 0, 0, "1")),
        f"n{node}/server.log": "".join(
            f"[2026-01-01 00:01:{at:02},000] INFO {message}\n" for at, message in enumerate(behind)
        ),
    }


def test_what_a_leader_lost_with_its_disk_is_lost_once_and_may_be_more_than_its_followers_had(telling: Telling) -> None:
    """It leads on in its epoch, then by an election: one disk, one loss. What it had alone no line tells."""
    elected = "[QuorumController id=9] partition change for x-0: isr: [1] -> [1], leader: -1 -> 1, leaderEpoch: 4 -> 5, "
    story = telling(
        {
            **emptied(
                2, follows(2, 1, 5, 700, 700), TRUNCATES.replace("700", "0").replace("=1, leaderId=2", "=2, leaderId=1")
            ),
            "n9/controller.log": f"[2026-01-01 00:00:30,000] INFO {elected}partitionEpoch: 5 -> 6\n",
        }
    )
    assert [(one.first, one.end, one.committed, one.why, one.nodes) for one in story.losses] == [
        (0, 900, "yes", "disk lost", [2])
    ]
    assert "how far the log of broker 1 reached that was lost" in str(story.losses[0].missing_line)
    assert "What would tell whether more was lost: " in headline(story)[0]


def test_what_the_next_leader_still_has_is_not_lost(telling: Telling) -> None:
    """A broker whose disk was lost leads on in its epoch until it is registered; then one leads that has everything."""
    assert telling(emptied(2, leads(2, 5, 900, 900, "2"))).losses == []
    assert len(telling(emptied(2, leads(2, 5, 700, 700, "2"))).losses) == 1


def test_what_the_only_replica_in_sync_had_alone_is_left_open(telling: Telling) -> None:
    first = headline(telling(emptied(2, leads(2, 5, 900, 900, "2"))))[0]
    assert first.startswith("Whether data was lost, these lines do not tell: x-0: ")
    assert "how far the log of broker 1 reached that was lost" in first


def test_a_high_watermark_of_records_that_were_lost_before_loses_no_more(telling: Telling) -> None:
    truncates = follows(2, 1, 5, 700, 700), TRUNCATES.replace("700", "0").replace("=1, leaderId=2", "=2, leaderId=1")
    files = emptied(2, *truncates)
    again = log(SIGNALS, MADE, leads(1, 6, 0, 0, "1")).replace("00:00:", "00:02:")
    files["n1/server.log"] += log(leads(1, 5, 0, 0, "1")).replace("00:00:", "00:01:") + again
    assert [(one.end, one.time[14:16]) for one in telling(files).losses] == [(900, "00")]


@pytest.mark.parametrize(("epoch", "committed"), [(5, "no"), (6, "unknown"), (None, "unknown")])
def test_whoever_may_have_led_in_between_may_have_committed_more(
    telling: Telling, epoch: int | None, committed: str
) -> None:
    """A replica was elected, and truncates to somebody else later: only of the next epoch is nobody in between."""
    changed = "[QuorumController id=9] partition change for x-0: "
    elected = changed + "isr: [{0}, {1}] -> [{1}], leader: {0} -> {1}, leaderEpoch: {2} -> {3}"
    loads = (
        "Completed load of Log(dir=/d/x-0, topic=x, partition=0, highWatermark=650, lastStableOffset=650, logStartOffset=0, "
        "logEndOffset=900)"
    )
    later = "" if epoch is None else log(leads(2, epoch, 700, 700, "2")).replace("00:00:00", "00:00:30")
    no_records = f"{FETCHER} Shutting down (kafka.server.ReplicaFetcherThread)"
    story = telling(
        {
            "n9/controller.log": log(elected.format(2, 1, 3, 4)),
            "n2/server.log": later,
            "n1/server.log": log(no_records, loads, TRUNCATES).replace("00:00:", "00:01:"),
        }
    )
    assert [(loss.first, loss.end, loss.committed) for loss in story.losses] == [(700, 900, committed)]


def test_within_a_second_a_rolled_part_comes_before_what_goes_on_with_it(telling: Telling) -> None:
    """Its log was made anew, then had nothing to truncate: the file of the second line sorts first by its name."""
    follows_on = (
        f"{FETCHER} Truncating partition x-0 with TruncationState(offset=0, completed=true) due to local high watermark 0",
        "[UnifiedLog partition=x-0, dir=/d] Truncating to 0 has no effect as the largest offset in the log is -1",
    )
    files = {
        "n1/server.log.2026-01-01": log(SIGNALS, MADE.replace("x-0", "y-0"), SIGNALS, MADE),
        "n1/server.log": "".join(f"[2026-01-01 00:00:03,000] INFO {message}\n" for message in follows_on),
    }
    assert lost(telling({path: text.replace(",000]", "]") for path, text in files.items()})) == []
