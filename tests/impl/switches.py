"""Profiles with one switch changed, and a log, a leader and a fetch to try them on."""

from typing import Any

from tests.impl.brokers import NOW
from tidegauge.impl.messages import Batch, BrokerState, FetchRequest
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.replica import partition as p
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.log import Log, append_as_follower

METADATA = tuple(BrokerState(b, epoch=10 + b) for b in range(3))
TODAY = Setup()


def without(**switches: Any) -> Setup:
    return Setup(profile=FETCH_TRUNCATION._replace(**switches))


def written(*batches: tuple[int, int, int], hw: int = 0) -> Log:
    log, _ = append_as_follower(TODAY, Log(), tuple(Batch(*b) for b in batches), 99)
    return log_.update_high_watermark(TODAY, log, hw)


LOG = written((0, 4, 0), (5, 9, 1), hw=5)


def led(setup: Setup, log: Log = LOG, epoch: int = 2, members: tuple[int, ...] = (0, 1)) -> Partition:
    return p.make_leader(setup, Partition(0, log), epoch, 1, members, (0, 1, 2), METADATA, NOW)[0]


def fetched(setup: Setup, partition: Partition, offset: int, broker: int = 1, broker_epoch: int = 11) -> Partition:
    request = FetchRequest(broker, 2, offset, UNDEFINED, 0, broker_epoch)
    return p.fetch_records(setup, partition, request, METADATA, NOW, 100)[0]
