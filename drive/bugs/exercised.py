"""Which rules the kill matrix has to exercise, and which are exercised elsewhere."""

from collections.abc import Mapping
from types import MappingProxyType

from tidegauge.conformance.judging.rulebook import rulebook
from tidegauge.drive.broker.coverage import T_TABLE
from tidegauge.impl.profiles import Rules

TO_EXERCISE: Mapping[str, str] = MappingProxyType(
    {
        **{rule.id: rule.sentence for rule in rulebook().values()},
        **{name: f"a decision of impl.rules:{name}" for name in Rules._fields},
        **dict.fromkeys(T_TABLE, "a row of the truncation table"),
    }
)
"""The rules of the judge, those of impl, the rows of the T-table; each with what it is."""

_JUDGE = "tests/conformance/kernel/test_rules.py"
_SCENARIOS = "conformance/scenarios/"

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "TRUNC-02": f"{_SCENARIOS}021_ex_leader_truncates_in_two_rounds.txt",
        "TRUNC-05": f"{_SCENARIOS}010_hw_only_loses_committed.txt",
        "ACK-01": f"{_SCENARIOS}140_acks_all_waits_for_the_isr.txt",
        "READ-01": f"{_SCENARIOS}140_acks_all_waits_for_the_isr.txt",
        "DATA-03": f"{_SCENARIOS}160_lost_disk_of_the_last_member_loses_committed.txt",
        "T2": f"{_SCENARIOS}100_fast_leader_changes_fork.txt",
        **dict.fromkeys(("APPEND-03", "EPOCH-06", "CTRL-08", "CTRL-09", "LOG-02", "SEQ-01"), _JUDGE),
        "epoch_for_offset": "tests/impl/storage/test_epoch_cache.py",
    }
)
"""What no bug here exercises, with the file that does. Nobody waits for acknowledgements or reads as a consumer in these
traces, no rounds of TRUNC-02 fit their bounds, a bug of the generation that takes T2 is seen before; the others need fields
that traces of the model do not have."""
