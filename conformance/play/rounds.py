"""What each directive does to a session.

Rules of this file

1. A shorthand takes only actions of `impl.cluster.cluster`, in the order Kafka would; the lines show which messages those
   were.
2. What cannot be done is a UsageError; whoever runs a directive takes back what happened before it.
"""

from tidegauge.conformance.judging.verdicts import Verdict, rule_verdicts
from tidegauge.conformance.play.arguments import NONE, Words
from tidegauge.conformance.play.control_rounds import CONTROLLED, command_of, controlled_session
from tidegauge.conformance.play.session import UNBOUNDED, Session, bounds_for
from tidegauge.impl.cluster.cluster import Label
from tidegauge.impl.cluster.transitions import ANYBODY, LAST_KNOWN
from tidegauge.impl.errors import UsageError
from tidegauge.impl.explored.describe import broker_name
from tidegauge.impl.messages import (
    FetchRequest,
    FetchResponseInFlight,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import named
from tidegauge.impl.rules import UNDEFINED

MOST_BROKERS = 9
REQUESTS = (FetchRequest, OffsetsForLeaderEpochRequest)
RESPONSES = (FetchResponseInFlight, OffsetsForLeaderEpochResponse)


# ---------------------------------------------------------------------------------------------------------------------
# The cluster


def new_session(words: Words) -> Session:
    """`cluster`: brokers, profile, switches turned on or off, records per fetch, min ISR, clients, whom ELR elects last.

    control=on: under the whole controller, which has options of its own (`control_rounds.CONTROLLED`).
    """
    brokers = words.number("brokers", 2)
    if not 1 <= brokers <= MOST_BROKERS:
        raise UsageError(f"brokers: expected 1 to {MOST_BROKERS}, saw {brokers}")
    profile = named(words.option("profile", "fetch-truncation"))
    max_fetch, min_isr = words.number("max_fetch", UNBOUNDED), words.number("min_isr", 1)
    clients = words.choice("clients", "off", ("on", "off")) == "on"
    control = words.choice("control", "off", ("on", "off")) == "on"
    own = {name: words.options.pop(name) for name in CONTROLLED if control and name in words.options}
    last_resort = words.choice("last_resort", NONE, (NONE, LAST_KNOWN, ANYBODY))
    thread = not control and words.choice("thread_truncates", "off", ("on", "off")) == "on"
    switches = [name for name in Profile._fields if isinstance(getattr(profile, name), bool)]
    for switch in list(words.options):
        value = words.option(switch, "")
        if switch not in switches or value not in {"on", "off"}:
            raise UsageError(f"switch: expected one of {', '.join(switches)} with =on or =off, saw {switch}={value}")
        profile = profile.switched({switch: value == "on"})
    if control:
        return controlled_session(Words(words.name, [], own), profile, brokers, min_isr, clients=clients)
    bounds = bounds_for(brokers, max_fetch, clients=clients)
    bounds = bounds._replace(min_insync_replicas=min_isr, thread_truncates=thread)
    return Session(bounds._replace(last_resort=last_resort if last_resort != NONE else ""), profile)


# ---------------------------------------------------------------------------------------------------------------------
# Records and fetches


def write(session: Session, words: Words) -> list[str]:
    """A producer's records, one batch each (also: produce)."""
    leader = words.broker(session)
    count = words.count()
    return [line for _ in range(count) for line in session.take(("LeaderAppend", leader))]


def fetch(session: Session, words: Words) -> list[str]:
    """A whole round, request and answer, be it about an epoch; join=no: the leader's metadata keeps it out of the ISR."""
    follower = words.broker(session)
    lost, join = words.choice("lost", "nothing", ("nothing", "response")), words.choice("join", "yes", ("yes", "no"))
    source = session.cluster.brokers[follower].source
    in_flight = None if source == UNDEFINED else session.cluster.network[follower][source]
    if isinstance(in_flight, RESPONSES):
        raise UsageError(
            f"fetch: expected nothing or a request in flight to {broker_name(source)}, saw a response; "
            f"deliver {broker_name(follower)} or lose {broker_name(follower)} first"
        )
    if in_flight is None:
        asks = session.first_enabled([("TruncateToHighWatermark", follower), ("SendEpochRequest", follower)])
        session.take(asks if asks is not None else ("SendFetch", follower))
        source = session.cluster.brokers[follower].source
    lines = session.take(_serving(session, source, follower, join == "yes"))
    if isinstance(session.cluster.network[follower][source], RESPONSES):
        lines += session.take(
            ("LoseResponse", follower, source) if lost == "response" else _answered(session, follower, source)
        )
    return lines


def _serving(session: Session, leader: int, follower: int, join: bool) -> Label:
    if isinstance(session.cluster.network[follower][leader], OffsetsForLeaderEpochRequest):
        return "HandleEpochRequest", leader, follower
    label = ("HandleFetch", leader, follower, 1)
    return label if join and label in session.enabled() else (*label[:3], 0)


def _answered(session: Session, follower: int, leader: int) -> Label:
    handlers = ("HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "HandleEpochResponse")
    label = session.first_enabled((name, follower, leader) for name in handlers)
    assert label is not None
    return label


def _waiting(session: Session, to: int) -> list[tuple[str, Label]]:
    """What can be delivered to a broker: (from whom, the action that consumes it)."""
    found: list[tuple[str, Label]] = []
    for other in range(session.brokers):
        if isinstance(session.cluster.network[to][other], RESPONSES):
            found.append((broker_name(other), _answered(session, to, other)))
        if isinstance(session.cluster.network[other][to], REQUESTS):
            found.append((broker_name(other), _serving(session, to, other, True)))
    news = session.first_enabled((name, to) for name in ("BecomeLeader", "BecomeFollower", "DeleteReplica"))
    return found if news is None else [*found, ("controller", news)]


def deliver(session: Session, words: Words) -> list[str]:
    """One message arrives, or the controller's registration."""
    to = words.broker(session)
    wanted = words.option("from", "")
    waiting = [(source, label) for source, label in _waiting(session, to) if wanted in {"", source}]
    if len(waiting) != 1:
        seen = ", ".join(f"from={source} ({command_of(session, label)})" for source, label in waiting) or "nothing"
        raise UsageError(f"deliver: expected one message for {broker_name(to)}, saw {seen}")
    return session.take(waiting[0][1])


def lose(session: Session, words: Words) -> list[str]:
    """A response in flight is lost, and the follower asks again."""
    follower = words.broker(session)
    wanted = words.option("from", "")
    for leader, message in enumerate(session.cluster.network[follower]):
        if isinstance(message, RESPONSES) and wanted in {"", broker_name(leader)}:
            return session.take(("LoseResponse", follower, leader))
    raise UsageError(f"lose: expected a response in flight to {broker_name(follower)}, saw none")


# ---------------------------------------------------------------------------------------------------------------------
# Processes, controller, ISR


def crash(session: Session, words: Words) -> list[str]:
    """The process dies; its high watermark checkpoint may be old, and with ELR the end of its log may be lost."""
    broker = words.broker(session)
    log = session.cluster.brokers[broker].partition.log
    kept = words.number("leo", log.end)
    return session.take((session.action("Crash"), broker, words.number("hw", min(log.hw, kept)), kept))


def restart(session: Session, words: Words) -> list[str]:
    """It starts again, fenced first if nobody has noticed; with ELR it registers, whatever anybody has noticed."""
    broker = words.broker(session)
    if session.cluster.brokers[broker].up:
        raise UsageError(f"restart: expected a broker that is down, saw {broker_name(broker)} up")
    if session.profile.elr:
        return session.take(_choosing(session, "Register", broker, words))
    lines = _fenced(session, broker, words) if broker in session.cluster.controller.live else []
    return [*lines, *session.take(("Restart", broker))]


def _fenced(session: Session, broker: int, words: Words) -> list[str]:
    return session.take(_choosing(session, session.action("FenceBroker"), broker, words))


def _choosing(session: Session, action: str, broker: int, words: Words) -> Label:
    elected = words.option("elect", "")
    chosen = [words.broker_called(session, elected)] if elected else [UNDEFINED, *range(session.brokers)]
    label = session.first_enabled((action, broker, k) for k in chosen)
    if label is None:
        raise UsageError(
            f"{words.name}: expected a live broker, down or in the ISR, and for elect= a live member of the ISR; saw "
            f"{broker_name(broker)}{' elect=' + elected if elected else ''}"
        )
    return label


def fence(session: Session, words: Words) -> list[str]:
    """A session ends: out of the ISR, and no leader any more."""
    lines = _fenced(session, words.broker(session), words)
    return [*lines, *_report(session, words)]


def unfence(session: Session, words: Words) -> list[str]:
    """A broker that is up counts again."""
    broker = words.broker(session)
    label = session.first_enabled((session.action("UnfenceBroker"), broker, k) for k in (UNDEFINED, *range(session.brokers)))
    if label is None:
        raise UsageError(f"unfence: expected a broker that is up and not live, saw {broker_name(broker)}")
    lines = session.take(label)
    return [*lines, *_report(session, words)]


def elect(session: Session, words: Words) -> list[str]:
    """Leadership moves to a live member of the ISR."""
    lines = session.take(("ElectPreferred", words.broker(session)))
    return [*lines, *_report(session, words)]


def shrink(session: Session, words: Words) -> list[str]:
    """The leader proposes an ISR without them."""
    leader = words.broker(session)
    lagging = words.brokers(session)
    return session.take(("ShrinkIsr", leader, sum(1 << b for b in set(lagging))))


def alter(session: Session, words: Words) -> list[str]:
    """Its proposal reaches the controller."""
    lines = session.take((session.action("AlterPartition"), words.broker(session)))
    return [*lines, *_report(session, words)]


def _report(session: Session, words: Words) -> list[str]:
    """The controller's registration reaches `told`, by default everybody; the leader first."""
    reported = words.option("told", "everybody")
    named_ = {"everybody": list(range(session.brokers)), "nobody": []}
    brokers = (
        named_[reported] if reported in named_ else [words.broker_called(session, name) for name in reported.split(",")]
    )
    lines = []
    for b in sorted(brokers, key=lambda b: b != session.cluster.controller.leader):
        news = session.first_enabled([("BecomeLeader", b), ("BecomeFollower", b)])
        lines += session.take(news) if news is not None else []
    return lines


# ---------------------------------------------------------------------------------------------------------------------
# Looking


def show(session: Session, _words: Words) -> list[str]:
    """Every log, the controller, what is in flight."""
    return session.show()


def check(session: Session, _words: Words) -> list[str]:
    """Every invariant."""
    return session.violations() or ["all invariants hold"]


def judge(session: Session, _words: Words) -> list[str]:
    """What the judge says of the run as a trace."""
    judgement = session.judged()
    failed = [v.rule.id for v in rule_verdicts(judgement.tallies) if v.verdict is Verdict.FAIL]
    if not failed:
        return ["the judge accepts this run"]
    firsts = {failure.rule: failure for failure in reversed(judgement.failures)}
    return [f"the judge rejects this run: {', '.join(failed)}"] + [
        f"{rule}: {firsts[rule].compared} expected {firsts[rule].expected}, seen {firsts[rule].actual}" for rule in failed
    ]


def actions(session: Session, _words: Words) -> list[str]:
    """Everything that can happen now."""
    return [command_of(session, label) for label in session.enabled()]
