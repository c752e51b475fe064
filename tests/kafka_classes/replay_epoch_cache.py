"""impl.storage.epoch_cache against LeaderEpochFileCache of 4.1.1, and of 3.4.1, which wrote truncations at once."""

from collections import Counter
from typing import Any

from tests.kafka_classes.replay import EXCEPTIONS, Disagreement, Replay, Sequence, Step, compare, java_name, pairs
from tidegauge.impl.errors import KafkaError
from tidegauge.impl.profiles import FETCH_TRUNCATION, Rules, Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import epoch_cache as ec
from tidegauge.impl.storage.epoch_cache import EpochCache


def setup_of(version: str, rules: Rules) -> Setup:
    queued = version != "3.4.1"
    return Setup(rules, FETCH_TRUNCATION._replace(cache_truncation_queued=queued))


def applied(setup: Setup, cache: EpochCache, name: str, arguments: list[int]) -> EpochCache:
    match name:
        case "assign":
            return ec.assign(setup, cache, *arguments)
        case "assignList":
            return ec.assign_all(setup, cache, tuple(zip(arguments[::2], arguments[1::2], strict=True)))
        case "truncateFromEnd":
            return ec.truncate_from_end(setup, cache, *arguments)
        case "truncateFromStart":
            return ec.truncate_from_start(setup, cache, *arguments)
        case "clear":
            return ec.clear(cache)
        case "clearAndFlush":
            return ec.clear_and_flush(cache)
        case "flush":
            return ec.flush(cache)
        case "reload":
            return ec.reload(setup, cache)
        case _:
            raise AssertionError(f"an operation this replay does not know: {name}")


def _none(value: int) -> int | None:
    return None if value == UNDEFINED else value


def _runs(setup: Setup, cache: EpochCache) -> list[list[int | None]]:
    runs: list[list[int | None]] = []
    for offset in range(-1, 65):
        epoch = _none(ec.epoch_for_offset(setup, cache, offset))
        if not runs or runs[-1][1] != epoch:
            runs.append([offset, epoch])
    return runs


def observed(setup: Setup, cache: EpochCache, step: Step, error: KafkaError | None) -> dict[str, Any]:
    first = ec.earliest_entry(cache)
    return {
        "err": java_name(error, EXCEPTIONS),
        "cache": pairs(cache),
        "disk": [list(entry) for entry in cache.disk.pairs()],
        "latest": _none(ec.latest_epoch(setup, cache)),
        "end": [list(ec.end_offset_for(setup, cache, step["leo"], epoch)) for epoch in range(-1, 11)],
        "prevLatest": _none(ec.previous_epoch(cache)),
        "first": None if first is None else list(first),
        "prev": [_none(ec.previous_epoch(cache, epoch)) for epoch in range(-1, 11)],
        "next": [_none(ec.next_epoch(cache, epoch)) for epoch in range(-1, 11)],
        "forOffset": _runs(setup, cache),
    }


def expected(step: Step) -> dict[str, Any]:
    kafka = {field: value for field, value in step.items() if field not in {"op", "leo"}}
    return {"err": None, "disk": step["cache"], **kafka}


def replay_with(rules: Rules) -> Replay:
    def replay(sequence: Sequence, excluded: Counter[str]) -> tuple[int, Disagreement | None]:
        setup, cache = setup_of(sequence["v"], rules), EpochCache()
        for number, step in enumerate(sequence["steps"]):
            name, *arguments = step["op"]
            error = None
            try:
                cache = applied(setup, cache, name, arguments)
            except KafkaError as thrown:
                error = thrown
            found = compare(sequence["seed"], number, step["op"], expected(step), observed(setup, cache, step, error))
            if found is not None:
                return number + 1, found
        return len(sequence["steps"]), None

    return replay
