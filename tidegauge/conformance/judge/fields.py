"""Numbers for the names of traces.schema: the position of a field, the code of an event.

A set of fields is a bit mask over positions: so the judge notes which fields an undecided check lacked.
"""

import tomllib
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any

from tidegauge.traces.schema import EVENTS, FIELDS

FIELD_NAMES = tuple(FIELDS)
_AT = {name: at for at, name in enumerate(FIELD_NAMES)}

PEER = _AT["peer"]
LEADER = _AT["leader"]
LEADER_EPOCH = _AT["leader_epoch"]
PARTITION_EPOCH = _AT["partition_epoch"]
ISR = _AT["isr"]
LIVE = _AT["live"]
CLEAN = _AT["clean"]
REQ_EPOCH = _AT["req_epoch"]
REQ_OFFSET = _AT["req_offset"]
REQ_LAST_EPOCH = _AT["req_last_epoch"]
REQ_BROKER_EPOCH = _AT["req_broker_epoch"]
ERROR = _AT["error"]
RES_HW = _AT["res_hw"]
RES_LOG_START = _AT["res_log_start"]
DIV_EPOCH = _AT["div_epoch"]
DIV_END = _AT["div_end"]
REC_BASE = _AT["rec_base"]
REC_END = _AT["rec_end"]
REC_EPOCH = _AT["rec_epoch"]
LEADER_START = _AT["leader_start"]
LEADER_END = _AT["leader_end"]
TARGET = _AT["target"]
COMPLETED = _AT["completed"]
REMOTE_LEO = _AT["remote_leo"]
EPOCH_START = _AT["epoch_start"]
ACKS = _AT["acks"]
BOUND = _AT["bound"]
LEO_BEFORE = _AT["leo_before"]
HW_BEFORE = _AT["hw_before"]
LEO = _AT["leo"]
HW = _AT["hw"]
LOG_START = _AT["log_start"]
EPOCHS = _AT["epochs"]
REPLICAS = _AT["replicas"]
ADDING = _AT["adding"]
REMOVING = _AT["removing"]
ELR = _AT["elr"]
LAST_KNOWN_ELR = _AT["last_known_elr"]
MIN_ISR = _AT["min_isr"]
BROKER_EPOCH = _AT["broker_epoch"]

# What a check may compare besides the fields of events
RUNNING = len(FIELD_NAMES)
ROLE = RUNNING + 1
IN_FLIGHT = RUNNING + 2
ENTRIES = RUNNING + 3
AGREE = RUNNING + 4
IN_SYNC = RUNNING + 5
ELECTED = RUNNING + 6
PENDING_ISR = RUNNING + 7
RESPONSE = RUNNING + 8
COMPARED = (
    *FIELD_NAMES,
    "running",
    "role",
    "in flight",
    "number of entries in the epoch cache",
    "offset up to which the logs agree",
    "size of the ISR (min.insync.replicas)",
    "elected leader",
    "pending proposal",
    "response",
)

BECOME_LEADER = EVENTS["BecomeLeader"].code
BECOME_FOLLOWER = EVENTS["BecomeFollower"].code
LEADER_APPEND = EVENTS["LeaderAppend"].code
SEND_FETCH = EVENTS["SendFetch"].code
HANDLE_FETCH = EVENTS["HandleFetch"].code
ANSWER_FETCH = EVENTS["AnswerFetch"].code
HANDLE_FETCH_RESPONSE = EVENTS["HandleFetchResponse"].code
HANDLE_DIVERGING_RESPONSE = EVENTS["HandleDivergingResponse"].code
HANDLE_OUT_OF_RANGE = EVENTS["HandleOutOfRange"].code
HANDLE_FETCH_ERROR = EVENTS["HandleFetchError"].code
SEND_EPOCH_REQUEST = EVENTS["SendEpochRequest"].code
HANDLE_EPOCH_REQUEST = EVENTS["HandleEpochRequest"].code
HANDLE_EPOCH_RESPONSE = EVENTS["HandleEpochResponse"].code
TRUNCATE_TO_HIGH_WATERMARK = EVENTS["TruncateToHighWatermark"].code
EXPAND_ISR = EVENTS["ExpandIsr"].code
SHRINK_ISR = EVENTS["ShrinkIsr"].code
ALTER_PARTITION = EVENTS["AlterPartition"].code
HANDLE_ALTER_PARTITION_RESPONSE = EVENTS["HandleAlterPartitionResponse"].code
CHANGE_PARTITION = EVENTS["ChangePartition"].code
REGISTER_BROKER = EVENTS["RegisterBroker"].code
FENCE_BROKER = EVENTS["FenceBroker"].code
UNFENCE_BROKER = EVENTS["UnfenceBroker"].code
SET_MIN_ISR = EVENTS["SetMinIsr"].code
READ_CONFIG = EVENTS["ReadConfig"].code
LOSE_DISK = EVENTS["LoseDisk"].code
DELETE_REPLICA = EVENTS["DeleteReplica"].code
START = EVENTS["Start"].code
STOP = EVENTS["Stop"].code
CRASH = EVENTS["Crash"].code
LOG_START_MOVED = EVENTS["LogStartMoved"].code
EPOCH_CACHE_ENTRY = EVENTS["EpochCacheEntry"].code
HW_CHECKPOINT = EVENTS["HwCheckpoint"].code
OBSERVE = EVENTS["Observe"].code
PRODUCE_ACK = EVENTS["ProduceAck"].code
READ = EVENTS["Read"].code


@cache
def names(mask: int) -> tuple[str, ...]:
    """Return the names of the fields in a bit mask, such as those that an undecided check lacked: bit i is field i."""
    return tuple(name for at, name in enumerate(FIELD_NAMES) if mask >> at & 1)


# The rules the judge checks, read from catalog.toml: one number per stable id, in the catalog's order.
#
# Rules of this part
#
# 1. An id is never reused; a new rule follows the last of its group in catalog.toml, which is the order of reports.
# 2. The sentence of a rule, its level and the bugs it resembles are read by conformance/judge/rulebook.py.


@cache
def catalog() -> dict[str, Any]:
    """Return the content of catalog.toml: tables of rules, actions, invariants and known bugs by name."""
    return tomllib.loads(files("tidegauge").joinpath("catalog.toml").read_text(encoding="utf-8"))


RULE_IDS: tuple[str, ...] = tuple(catalog()["rule"])
RULES = len(RULE_IDS)

# A module, because Numba compiles attributes of modules as constants (`RULE.HW_10` is a number).
RULE = ModuleType("RULE", "The number of each rule, by its id.")
vars(RULE).update({rule_id.replace("-", "_"): number for number, rule_id in enumerate(RULE_IDS)})
