"""impl.replica.fetcher and impl.storage.log against ReplicaFetcherThread, with and without truncation on fetch."""

from collections import Counter
from typing import Any

from tests.kafka_classes.replay import Disagreement, Replay, Sequence, Step, compare, log_of, pairs
from tidegauge.impl.errors import ERROR_CODES, KafkaError
from tidegauge.impl.messages import Batch, FetchResponse, FetchResponseInFlight, ListOffsets
from tidegauge.impl.profiles import FETCH_TRUNCATION, Rules, Setup
from tidegauge.impl.replica import fetcher as f
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION


def _offsets(step: Step) -> ListOffsets | None:
    if "leaderLatest" not in step:
        return None
    listing = {None: NONE, "FencedLeaderEpochException": FENCED_LEADER_EPOCH}
    error = listing.get(step.get("listError"), UNKNOWN_TOPIC_OR_PARTITION)
    return ListOffsets(step["leaderEarliest"], step["leaderLatest"], error, error)


def _truncate_pass(setup: Setup, fetcher: Fetcher, step: Step) -> tuple[Fetcher, dict[str, int] | None]:
    asked = f.epoch_to_ask(setup, fetcher)
    if asked == UNDEFINED or fetcher.entry is None:
        return f.maybe_truncate_alone(setup, fetcher), None
    asked_in, in_flight = fetcher.entry.current_leader_epoch, step["answer"]
    if step["during"] == "removed":
        fetcher = f.remove_partition(fetcher)
    elif step["during"] == "readded":
        fetcher = f.add_partition(setup, f.remove_partition(fetcher), step["duringEpoch"], step["duringInitOffset"])
    fetcher = f.truncate_to_epoch_end_offset(
        setup, fetcher, asked_in, ERROR_CODES[in_flight["error"]], in_flight["epoch"], in_flight["end"]
    )
    return fetcher, {"currentLeaderEpoch": asked_in, "leaderEpoch": asked}


def _fetch(setup: Setup, fetcher: Fetcher, step: Step) -> Fetcher:
    response = step["resp"]
    if response == "transportFailure":
        return f.delay(fetcher)
    epoch, end = response["div"] or (UNDEFINED, UNDEFINED)
    batches = tuple(Batch(*batch[:3]) for batch in response["batches"])
    in_flight = FetchResponseInFlight(
        UNDEFINED if step["req"]["epoch"] is None else step["req"]["epoch"],
        step["req"]["off"],
        FetchResponse(ERROR_CODES[response["error"]], response["hw"], response["ls"], batches, epoch, end),
        _offsets(step),
    )
    return f.process_fetch_response(setup, fetcher, in_flight, corrupt=bool(response.get("corrupt")))


def applied(setup: Setup, fetcher: Fetcher, step: Step) -> tuple[Fetcher, dict[str, int] | None]:
    match step["op"]:
        case "add":
            offsets = _offsets(step) if step["initOffset"] < 0 else None
            return f.add_partition(setup, fetcher, step["leaderEpoch"], step["initOffset"], offsets), None
        case "remove":
            return f.remove_partition(fetcher), None
        case "expireDelay":
            return f.expire_delay(fetcher), None
        case "markForTruncation":
            return f.mark_for_truncation(fetcher, step["o"]), None
        case "truncatePass":
            return _truncate_pass(setup, fetcher, step)
        case "fetch":
            return _fetch(setup, fetcher, step), None
        case name:
            raise AssertionError(f"an operation this replay does not know: {name}")


def _entry(entry: PartitionFetchState | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    return {
        "off": entry.fetch_offset,
        "lag": entry.lag,
        "epoch": entry.current_leader_epoch,
        "delayed": entry.delayed,
        "state": "Truncating" if entry.truncating else "Fetching",
        "lfe": None if entry.last_fetched_epoch == UNDEFINED else entry.last_fetched_epoch,
    }


def _call(call: f.TruncationCall) -> list[Any]:
    return ["truncateFullyAndStartAt", call.offset] if call.completed is None else ["truncate", *call]


def observed(fetcher: Fetcher, thrown: bool, asked: dict[str, int] | None) -> dict[str, Any]:
    log = fetcher.log
    state = {"ls": log.start, "leo": log.end, "hw": log.hw, "cache": pairs(log.cache)}
    return {
        "fs": _entry(fetcher.entry),
        "failed": fetcher.failed,
        "calls": [_call(call) for call in fetcher.calls],
        "st": {**state, "batches": [list(batch[:3]) for batch in log.batches]},
        "thrown": thrown,
        "asked": asked,
    }


def expected(step: Step, asked: dict[str, int] | None) -> dict[str, Any]:
    """What Kafka did. `asked` is absent where the response was dropped, so it is compared only where it is told."""
    return {
        "fs": step["fs"],
        "failed": step["failed"],
        "calls": step.get("calls", []),
        "st": step["st"],
        "thrown": "thrown" in step,
        "asked": step.get("asked", asked),
    }


def replay_with(rules: Rules) -> Replay:
    def replay(sequence: Sequence, excluded: Counter[str]) -> tuple[int, Disagreement | None]:
        setup = Setup(rules, FETCH_TRUNCATION._replace(truncation_on_fetch=sequence["tof"]))
        fetcher = Fetcher(log_of(sequence["init"]))
        for number, step in enumerate(sequence["steps"]):
            asked, thrown, fetcher = None, False, fetcher._replace(calls=())
            try:
                fetcher, asked = applied(setup, fetcher, step)
            except KafkaError as error:
                thrown, fetcher = True, error.left_behind or fetcher
            found = compare(sequence["seed"], number, step["op"], expected(step, asked), observed(fetcher, thrown, asked))
            if found is not None:
                return number + 1, found
        return len(sequence["steps"]), None

    return replay
