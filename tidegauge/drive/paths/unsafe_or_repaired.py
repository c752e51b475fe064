"""What a broker does where today's Kafka is unsafe: as Kafka, or repaired. A path for each bug of `impl.profiles.UNSAFE`.

Each such bug is a switch of the profile, and each switch has a path on which a broker with the bug and one without report
different things (TELLING). A broker is taken through these paths, and its reports compared with both. UNSAFE has the bug's
name by its switch, which is on in a generation that has the bug.

Rules of this file

1. A broker that has repaired what its generation does wrong is right, so it is compared with that generation repaired.
2. This comes before anything else, so that all paths are made for what the broker is, and a recording names it.
3. A broker whose reports fit neither is compared with the generation that the user named: it has another bug.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.contract import Capabilities, Node, Report
from tidegauge.impl.profiles import CHANGED, UNSAFE, WITHOUT, Profile
from tidegauge.impl.releases import RELEASE
from tidegauge.impl.rules import NONE, UNDEFINED

LATEST = "4.3.1"
"""The latest release whose sources were read (impl.releases, rule 4)."""

BEHIND, AHEAD = 3, 2
"""The peers: one that lacks the last record, and one that has it."""

# A leader has recorded that one peer has its record. It misses an epoch, in which that peer may have truncated (F2).
_MISSED_EPOCH = BrokerCase(
    Opening((AHEAD, BEHIND)),
    (
        ("metadata", BROKER, 0, 0, (BROKER, AHEAD, BEHIND)),
        ("append", 1),
        ("fetch", AHEAD, 0, 1, 0, False),
        ("metadata", BROKER, 2, 1, (BROKER, AHEAD)),
    ),
)

# A leader has added a peer, proposes another, and then reads the metadata that adds the first (F3).
_KNOWN_METADATA = BrokerCase(
    Opening((AHEAD, BEHIND)),
    (
        ("metadata", BROKER, 0, 0, (BROKER,)),
        ("append", 1),
        ("fetch", AHEAD, 0, 1, 0, True),
        ("alter_partition_response", NONE, 1, (BROKER, AHEAD)),
        ("fetch", BEHIND, 0, 1, 0, True),
        ("append", 1),
        ("fetch", AHEAD, 0, 2, 0, True),
        ("metadata", BROKER, 0, 1, (BROKER, AHEAD)),
    ),
)

# A high watermark inside a batch, as a path: since 4.0 a read looks its position up, which is the batch's base.
#
# Rules of this part
#
# 1. The peer does what a right one may. It leads, has committed a batch of five records, and a client has deleted the first
#    three; it came back from a crash with an older checkpoint, so its high watermark is its log start
#    (UnifiedLog#updateHighWatermark). That is what its fetch response says.
# 2. Between the third step and the fourth nothing happens but a read: `read_by_consumer` of drive/broker/reference.py.
# 3. Then the broker leads. A client cannot delete what it could before, and a follower whose disk was lost begins at the log
#    start: what is recorded of it is the batch's base, too. Its next fetch mends it all.
ROUNDED_CLAIM = (
    "A high watermark inside a batch falls to the batch's base when somebody reads, below the log start (since 4.0)."
)
PEER, EVERYBODY = 2, (1, 2)
INSIDE, END = 3, 5

ROUNDED_HIGH_WATERMARK = BrokerCase(
    Opening((PEER,)),
    (
        ("metadata", PEER, 0, 0, EVERYBODY),
        ("fetch_response", PEER, NONE, 0, 0, ((0, END - 1, 0),), None, None),
        ("fetch_response", PEER, NONE, INSIDE, INSIDE, (), None, None),
        ("lose_response", PEER),
        ("metadata", BROKER, 1, 1, EVERYBODY),
        ("delete_records", INSIDE),
        ("fetch", PEER, 1, INSIDE, UNDEFINED, True),
        ("fetch", PEER, 1, END, 0, True),
    ),
)
"""Before 4.0 the high watermark of this path goes 0, 3, 5; since then 0, 3, 0, 5."""

TELLING: Mapping[str, BrokerCase] = MappingProxyType(
    {
        "keeps_remote_leo": _MISSED_EPOCH,
        "reads_equal_partition_epoch": _KNOWN_METADATA,
        "hw_rounded_to_batches": ROUNDED_HIGH_WATERMARK,
    }
)
"""By the switch, a path on which its two values differ."""


class KafkasBugs(NamedTuple):
    """The bugs of a broker's generation that the broker has repaired, and those that it has, by the names in UNSAFE."""

    repaired: tuple[str, ...]
    present: tuple[str, ...]


def ask(node: Node[BrokerCase], profile: Profile) -> KafkasBugs:
    """Take a broker through the paths that tell; return which bugs of its generation it has, and which it has repaired.

    `profile`: the generation that the user named. A bug is in neither list if the broker cannot be given its path, or if its
    reports fit neither or both.
    """
    switches_and_cases = [
        (switch, case)
        for switch, case in TELLING.items()
        if getattr(profile, switch) and _can_be_given(case, profile, node.capabilities)
    ]
    reports: dict[int, list[Report]] = {}
    cases = [case for _, case in switches_and_cases]

    def watch(number: int, step: int, report: Report) -> bool:
        """Record a report of the case with this number; return whether the case goes on."""
        reports.setdefault(number, []).append(report)
        return step < len(cases[number].path)

    if cases:
        node.play(cases, watch)
    repaired: list[str] = []
    present: list[str] = []
    for number, (switch, case) in enumerate(switches_and_cases):
        fits_unsafe, fits_safe = (
            _fits(case, generation, reports.get(number, ()), node.capabilities.reports)
            for generation in (profile, profile.switched({switch: False}))
        )
        # A broker that reports too few fields fits both; one with another bug may fit neither (rule 3 of this file).
        if fits_safe != fits_unsafe:
            (repaired if fits_safe else present).append(UNSAFE[switch])
    return KafkasBugs(tuple(repaired), tuple(present))


def telling_cases(profile: Profile, capabilities: Capabilities) -> list[BrokerCase]:
    """Return the paths of TELLING that a broker can be given. Among the others of a run they show its bugs."""
    return [case for case in TELLING.values() if _can_be_given(case, profile, capabilities)]


def _can_be_given(case: BrokerCase, profile: Profile, capabilities: Capabilities) -> bool:
    """Return whether a broker of this generation can be given all steps of a path."""
    # An older generation may not allow a step, and then the path shows nothing about the bug.
    return reference(profile).can_be_given(case, capabilities)


def _fits(case: BrokerCase, profile: Profile, reports: list[Report] | tuple[()], reported: frozenset[str]) -> bool:
    """Return whether a right broker of this generation would report the same on a path, in the fields `reported`."""
    right = reference(profile)
    expected = list(right.reports(case))
    # A broker that was not played to the end fits nothing.
    return len(reports) == len(expected) and not any(map(right.differences, expected, reports, [reported] * len(reports)))


def report_lines(bugs: KafkasBugs, profile: Profile) -> list[str]:
    """Return lines for the report of a run about the bugs of a broker. `profile`: the generation that the user named."""
    # The profile's name without the marks of repaired bugs and changed switches. One that is no release's is as the latest.
    generation = profile.name.partition(WITHOUT)[0].partition(CHANGED)[0]
    release = generation.removeprefix(RELEASE) if generation.startswith(RELEASE) else LATEST
    lines = []
    if bugs.repaired:
        lines.append(f"better than Kafka {release}: {', '.join(bugs.repaired)} repaired")
    # A high watermark that falls to the base of its batch shows consumers too little until the next fetch; it loses nothing.
    losing = [bug for bug in bugs.present if bug != UNSAFE["hw_rounded_to_batches"]]
    if losing:
        lines.append(
            f"as Kafka {release} does, this broker may lose acknowledged records ({', '.join(losing)}): `tidegauge check` "
            "rejects runs that show it, and --profile safe this broker"
        )
    return lines
