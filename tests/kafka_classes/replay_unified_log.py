"""impl.storage against UnifiedLog: appends, truncates, high watermark, log start, segments, restarts, reads."""

from collections import Counter
from typing import Any

from tests.kafka_classes.replay import EXCEPTIONS, Disagreement, Replay, Sequence, Step, compare, java_name, pairs
from tidegauge.impl.errors import KafkaError, OffsetOutOfRangeError
from tidegauge.impl.messages import Batch
from tidegauge.impl.profiles import Rules, Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import log as l
from tidegauge.impl.storage.log import AppendInfo, Log

EVERYTHING = 1 << 20


def _info(info: AppendInfo) -> list[Any]:
    if info.batches == 0:
        return [UNDEFINED, UNDEFINED, None, 0]
    return [info.first, info.last, info.last_epoch, 1]


def _crashed(setup: Setup, log: Log, step: Step) -> Log:
    active = [batch for batch in log.batches if batch.base >= l.active_segment(log)]
    lost = min(step["lostBatches"], len(active))
    survived = log._replace(batches=log.batches[: len(log.batches) - lost])
    return l.load(setup, survived, log_start=step["ckptLogStart"], recovery_point=step["ckptRecoveryPoint"])


def _reopened(setup: Setup, log: Log, step: Step) -> Log:
    closed = l.flush_cache(l.flush(log))
    return l.load(setup, closed, log_start=step["ckptLogStart"], recovery_point=step["ckptRecoveryPoint"], clean=True)


def applied(setup: Setup, log: Log, step: Step, at_once: bool) -> tuple[Log, Any]:
    match step["op"]:
        case "appendLeader":
            log, info = l.append_as_leader(setup, log, step["n"], step["epoch"])
            return log, [info.first, info.last, 1]
        case "appendFollower":
            batches = tuple(Batch(*batch[:3]) for batch in step["batches"])
            log, info = l.append_as_follower(setup, log, batches, step["leaderEpoch"])
            return log, _info(info)
        case "assignEpoch":
            return l.assign_epoch_start_offset(setup, log, step["epoch"], step["start"]), None
        case "truncateTo":
            return l.truncate_to(setup, log, step["o"])
        case "truncateFullyAndStartAt":
            return l.truncate_fully_and_start_at(log, step["o"], step["logStart"]), None
        case "updateHighWatermark":
            log = l.update_high_watermark(setup, log, step["o"])
            return log, log.hw
        case "maybeIncrementHighWatermark":
            found = l.batch_base_at(log, step["o"]) if step["meta"] else None
            hw = step["o"] if found is None else found
            return l.maybe_increment_high_watermark(setup, log, hw, located=found is not None)
        case "maybeIncrementLogStartOffset":
            return l.maybe_increment_log_start(setup, log, step["o"])
        case "roll":
            log = l.roll(log)
            base = l.active_segment(log)
            return (l.flush(log, base) if at_once else log), base
        case "deleteOldSegments":
            return l.delete_old_segments(log)
        case "flush":
            return l.flush(log), None
        case "reopenClean":
            return _reopened(setup, log, step), None
        case "crash":
            return _crashed(setup, log, step), None
        case name:
            raise AssertionError(f"an operation this replay does not know: {name}")


def _segments(log: Log) -> list[list[Any]]:
    ends = [*log.segments[1:], EVERYTHING]
    return [
        [base, [list(batch[:3]) for batch in log.batches if base <= batch.base < end]]
        for base, end in zip(log.segments, ends, strict=True)
    ]


def state_of(log: Log) -> dict[str, Any]:
    return {
        "ls": log.start,
        "leo": log.end,
        "hw": log.hw,
        "lso": log.hw,
        "rp": log.recovery_point,
        "cache": pairs(log.cache),
        "segs": _segments(log),
    }


def _read(log: Log, offset: int, bound: int) -> Any:
    try:
        batches = l.read(log, offset, bound, EVERYTHING)
    except OffsetOutOfRangeError as thrown:
        return java_name(thrown, EXCEPTIONS)
    return [batches[0].base, batches[-1].last] if batches else []


def _reads(log: Log, bound: int) -> list[list[Any]]:
    runs: list[list[Any]] = []
    for offset in range(-1, log.end + 3):
        result = _read(log, offset, bound)
        if not runs or runs[-1][1] != result:
            runs.append([offset, result])
    return runs


def last_look(setup: Setup, log: Log) -> dict[str, Any]:
    """What the last step of a sequence adds, in the order it was taken: look-ups by the reads may round the HW."""
    ends = [l.end_offset_for_epoch(setup, log, epoch) for epoch in range(-1, 10)]
    looked: dict[str, Any] = {
        "end": [None if end == UNDEFINED else [epoch, end] for epoch, end in ends],
        "read_LOG_END": _reads(log, log.end),
    }
    log = l.locate_high_watermark(setup, log)
    looked["read_HIGH_WATERMARK"] = looked["read_TXN_COMMITTED"] = _reads(log, log.hw)
    looked["snapshot"] = [log.start, log.end, log.hw, log.hw]
    return looked


def replay_with(rules: Rules) -> Replay:
    def replay(sequence: Sequence, excluded: Counter[str]) -> tuple[int, Disagreement | None]:
        setup, log, at_once = Setup(rules), Log(), sequence["async"] == "run"
        for number, step in enumerate(sequence["steps"]):
            result, error = None, None
            try:
                log, result = applied(setup, log, step, at_once)
            except KafkaError as thrown:
                error, log = thrown, thrown.left_behind or log
            if at_once:
                log = l.flush_cache(log)
            ours = {"st": state_of(log), "err": java_name(error, EXCEPTIONS), "res": result}
            kafka = {"st": step["st"], "err": step.get("err"), "res": step.get("res")}
            if "end" in step:
                looked = last_look(setup, log)
                ours |= looked
                kafka |= {field: step[field] for field in looked}
            found = compare(sequence["seed"], number, step["op"], kafka, ours)
            if found is not None:
                return number + 1, found
        return len(sequence["steps"]), None

    return replay
