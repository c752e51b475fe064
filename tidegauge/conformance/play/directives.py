"""The commands of a session: shorthands for the usual rounds, what shows the cluster, and the TLA+ actions in kebab-case.

A directive is a command with its handler. A handler gets the session and the words after the command's name
(arguments.Words), takes steps, and returns the lines to print. A step is a label of the specification: the name of an action
and its arguments, brokers by their index. The network is `network[follower][leader]`: what is in flight between two brokers,
a request or its response.

Rules of this file

1. Every directive carries its usage, an example and a sentence, its docstring; `help` prints them, so nothing else has to.
2. A shorthand takes only steps that its cluster (session.PlayedCluster) allows, in the order Kafka would; the lines show
   which messages those were.
3. A mistake is answered with a line that begins with `error:`, and takes back the steps before it.
4. Under the whole controller (`cluster control=on`) a directive is one request, or one thing that happens to a broker, and
   then the brokers of `told`, by default all, read the news of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tidegauge.conformance.checking.verdicts import Verdict, rule_verdicts
from tidegauge.conformance.play import arguments
from tidegauge.conformance.play.arguments import Words
from tidegauge.conformance.play.session import (
    ACTIONS_WITH_ELR,
    UNBOUNDED,
    ControllerPlay,
    Session,
    bounds_for,
    broker_play,
    controller_play,
)
from tidegauge.impl.cluster.cluster import Label
from tidegauge.impl.cluster.transitions import ANYBODY, LAST_KNOWN
from tidegauge.impl.explorer.controller_model import ControlBounds
from tidegauge.impl.explorer.describe import broker_name
from tidegauge.impl.explorer.explore import as_profile
from tidegauge.impl.messages import (
    FetchRequest,
    FetchResponseInFlight,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from tidegauge.impl.profiles import ClusterProfiles, Profile
from tidegauge.impl.rules import UNDEFINED
from tidegauge.util.errors import UsageError

MOST_BROKERS = 9
REQUESTS = (FetchRequest, OffsetsForLeaderEpochRequest)
RESPONSES = (FetchResponseInFlight, OffsetsForLeaderEpochResponse)
CONTROLLED = "cluster brokers=3 control=on profile=elr min_isr=2"
"""A command that starts a cluster under the whole controller, as messages suggest it."""

DirectiveHandler = Callable[[Session, Words], list[str]]


@dataclass(frozen=True)
class Directive:
    """One command: how it is written, an example, what it does (for `help`), and its handler `run`."""

    usage: str
    example: str
    says: str
    run: DirectiveHandler

    @property
    def name(self) -> str:
        """The first word of its usage."""
        return self.usage.split()[0]


DIRECTIVES: dict[str, Directive] = {}
"""Every directive by name; a shorthand takes the place of the action it is named like."""


def directive(usage: str, example: str, *, controlled: bool = False) -> Callable[[DirectiveHandler], DirectiveHandler]:
    """Return a decorator that enters a handler into DIRECTIVES, under the first word of its usage.

    The docstring of the handler is its help. `controlled`: the command needs a cluster under the whole controller.
    """

    def enter(handler: DirectiveHandler) -> DirectiveHandler:
        """Enter the handler, guarded if it is `controlled`; return it as it is, for more names of one handler."""
        run = _guarded(handler) if controlled else handler
        entry = Directive(usage, example, (handler.__doc__ or "").strip(), run)
        DIRECTIVES[entry.name] = entry
        return handler

    return enter


def _guarded(handler: DirectiveHandler) -> DirectiveHandler:
    """Return a handler that raises UsageError if the cluster is not under the whole controller, and else runs this one."""

    def run(session: Session, words: Words) -> list[str]:
        """Run the handler, or raise UsageError."""
        if not session.has_whole_controller:
            raise UsageError(
                f"{words.name}: expected a cluster under the whole controller, seen another; begin with: {CONTROLLED}"
            )
        return handler(session, words)

    return run


# ---------------------------------------------------------------------------------------------------------------------
# The cluster


@directive("cluster brokers=N profile=NAME SWITCH=on|off", "cluster brokers=3 response_epoch_checked=off")
def _cluster(_session: Session, _words: Words) -> list[str]:
    """Start a cluster that b1 leads; also max_fetch=N (records), min_isr=N, clients=on, last_resort=last-known|anybody.

    thread_truncates=on: a truncation that needs no response is a step of the fetcher thread.
    control=on: under the whole controller, with replicas=BROKERS, partition_zero=N, unclean=on, directories=2.
    """
    return ["ok"]  # Player makes the session: no other handler may replace it


def new_session(words: Words) -> Session:
    """Start the session that the options of `cluster` ask for; take these options out of `words`."""
    # Options that every cluster has, and those of the whole controller (control=on).
    brokers = words.number("brokers", 2)
    if not 1 <= brokers <= MOST_BROKERS:
        raise UsageError(f"brokers: expected 1 to {MOST_BROKERS}, seen {brokers}")
    profile = as_profile(words.option("profile", "fetch-truncation"), brokers)
    max_fetch, min_isr = words.number("max_fetch", UNBOUNDED), words.number("min_isr", 1)
    clients = words.choice("clients", "off", ("on", "off")) == "on"
    control = words.choice("control", "off", ("on", "off")) == "on"
    # Taken out before the switches are read, which are all options that are left.
    controller_names = ("replicas", "partition_zero", "unclean", "directories")
    controller_options = {name: words.options.pop(name) for name in controller_names if control and name in words.options}
    last_resort = words.choice("last_resort", arguments.NONE, (arguments.NONE, LAST_KNOWN, ANYBODY))
    thread = not control and words.choice("thread_truncates", "off", ("on", "off")) == "on"
    # A profile for each broker, as in `profile=kip101,kip279`: switches would not say whose they are.
    if isinstance(profile, ClusterProfiles):
        if control or words.options:
            seen = "control=on" if control else f"{next(iter(words.options))}="
            raise UsageError(
                f"cluster: expected profiles by broker without switches and control=on, seen {seen}; leave it out"
            )
        bounds = bounds_for(brokers, max_fetch, clients=clients)
        return Session(broker_play(bounds._replace(min_insync_replicas=min_isr, thread_truncates=thread), profile))
    # All options that are left are switches of the profile: its fields that are on or off.
    switches = [name for name in Profile._fields if isinstance(getattr(profile, name), bool)]
    for switch in list(words.options):
        value = words.option(switch, "")
        if switch not in switches or value not in {"on", "off"}:
            raise UsageError(f"switch: expected one of {', '.join(switches)} with =on or =off, seen {switch}={value}")
        profile = profile.switched({switch: value == "on"})
    if control:
        own_words = Words(words.name, positional=[], options=controller_options)
        return Session(_controller_cluster(own_words, profile, brokers, min_isr, clients=clients))
    bounds = bounds_for(brokers, max_fetch, clients=clients)
    bounds = bounds._replace(min_insync_replicas=min_isr, thread_truncates=thread)
    return Session(broker_play(bounds._replace(last_resort=last_resort if last_resort != arguments.NONE else ""), profile))


def _controller_cluster(words: Words, profile: Profile, brokers: int, min_isr: int, *, clients: bool) -> ControllerPlay:
    """Build the cluster of control=on from the options that only it has.

    All brokers are replicas unless `replicas` names some. With partition_zero=N the played partition is partition 1.
    """
    option = words.option("replicas", "")
    all_brokers = [f"b{b + 1}" for b in range(brokers)]
    replicas = option.split(",") if option else all_brokers
    unknown = next((name for name in replicas if name not in all_brokers), None)
    if unknown is not None or len(set(replicas)) != len(replicas):
        raise UsageError(f"cluster: expected replicas of {', '.join(all_brokers)}, each once; seen replicas={option}")
    bounds = ControlBounds(
        tuple(all_brokers.index(name) for name in replicas),
        brokers,
        words.number("partition_zero", 0),
        min_isr=min_isr,
        unclean=words.choice("unclean", "off", ("on", "off")) == "on",
        disks_fail=words.choice("directories", "1", ("1", "2")) == "2",
    )
    # The models of failing disks have all brokers as replicas, and no other partition.
    if bounds.disks_fail and (bounds.partition_zero or len(replicas) != brokers):
        raise UsageError("cluster: expected all brokers as replicas where they have two directories, seen other options")
    return controller_play(bounds, profile, clients=clients)


# ---------------------------------------------------------------------------------------------------------------------
# Records and fetches


@directive("produce LEADER [COUNT]", "produce b1")
@directive("write LEADER [COUNT]", "write b1 2")
def _write(session: Session, words: Words) -> list[str]:
    """Write a producer's records, one batch each (also: produce)."""
    leader = words.broker(session)
    count = words.count()
    return [line for _ in range(count) for line in session.take(("LeaderAppend", leader))]


@directive("fetch FOLLOWER [lost=response] [join=no]", "fetch b2 lost=response")
def _fetch(session: Session, words: Words) -> list[str]:
    """Take a round, request and response, of a fetch or of an epoch; join=no: the leader keeps it out of the ISR."""
    follower = words.broker(session)
    lost, join = words.choice("lost", "nothing", ("nothing", "response")), words.choice("join", "yes", ("yes", "no"))
    source = session.cluster.brokers[follower].source
    in_flight = None if source == UNDEFINED else session.cluster.network[follower][source]
    if isinstance(in_flight, RESPONSES):
        raise UsageError(
            f"fetch: expected nothing or a request in flight to {broker_name(source)}, seen a response; "
            f"deliver {broker_name(follower)} or lose {broker_name(follower)} first"
        )
    # A request that an earlier directive sent is the one that this round is about; a second one cannot be in flight.
    if in_flight is None:
        # In profiles that do not truncate on fetch a new follower truncates, or asks for the end of its epoch, first.
        first = session.first_enabled([("TruncateToHighWatermark", follower), ("SendEpochRequest", follower)])
        session.take(first if first is not None else ("SendFetch", follower))
        source = session.cluster.brokers[follower].source
    # The lines of the round begin with the request that is handled: that it was sent goes without saying.
    lines = session.take(_serving(session, source, follower, join=join == "yes"))
    # A leader that is down or refuses leaves nothing in flight to be handled.
    if isinstance(session.cluster.network[follower][source], RESPONSES):
        lines += session.take(
            ("LoseResponse", follower, source) if lost == "response" else _handling(session, follower, source)
        )
    return lines


def _serving(session: Session, leader: int, follower: int, *, join: bool) -> Label:
    """Return the step with which a leader handles the request in flight; `join`: the follower joins the ISR if it may."""
    if isinstance(session.cluster.network[follower][leader], OffsetsForLeaderEpochRequest):
        return "HandleEpochRequest", leader, follower
    # The last number is 1 if the fetch lets its follower join the ISR, which is enabled only where it may.
    joining = ("HandleFetch", leader, follower, 1)
    return joining if join and joining in session.enabled() else ("HandleFetch", leader, follower, 0)


def _handling(session: Session, follower: int, leader: int) -> Label:
    """Return the step with which a follower handles the response in flight: one of its handlers is enabled."""
    handlers = ("HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "HandleEpochResponse")
    label = session.first_enabled((name, follower, leader) for name in handlers)
    assert label is not None
    return label


@directive("deliver BROKER [from=BROKER|controller]", "deliver b2 from=b1")
def _deliver(session: Session, words: Words) -> list[str]:
    """Deliver the one message for a broker, or the controller's registration."""
    receiver = words.broker(session)
    sender = words.option("from", "")
    waiting = [(source, label) for source, label in _deliverable(session, receiver) if sender in {"", source}]
    # With two it is for the user to say which one arrives first.
    if len(waiting) != 1:
        seen = ", ".join(f"from={source} ({session.now.command(label)})" for source, label in waiting) or "nothing"
        raise UsageError(f"deliver: expected one message for {broker_name(receiver)}, seen {seen}")
    (_, label), *_ = waiting
    return session.take(label)


def _deliverable(session: Session, receiver: int) -> list[tuple[str, Label]]:
    """Return what can be delivered to a broker: the name of each sender, and the step that consumes its message.

    Delivered so, a fetch lets its follower join the ISR if it may.
    """
    messages: list[tuple[str, Label]] = []
    network = session.cluster.network
    for other in range(session.brokers):
        # A row of the network is a follower's: its request to each leader, or that leader's response.
        if isinstance(network[receiver][other], RESPONSES):
            messages.append((broker_name(other), _handling(session, receiver, other)))
        if isinstance(network[other][receiver], REQUESTS):
            messages.append((broker_name(other), _serving(session, receiver, other, join=True)))
    # The controller's registration, of which a broker reads one change at a time.
    news = session.first_enabled((name, receiver) for name in ("BecomeLeader", "BecomeFollower", "DeleteReplica"))
    return messages if news is None else [*messages, ("controller", news)]


@directive("lose FOLLOWER [from=BROKER]", "lose b2")
def _lose(session: Session, words: Words) -> list[str]:
    """Lose a response in flight: of the first leader that has one, unless from= names it. The follower asks anew."""
    follower = words.broker(session)
    sender = words.option("from", "")
    for leader, message in enumerate(session.cluster.network[follower]):
        if isinstance(message, RESPONSES) and sender in {"", broker_name(leader)}:
            return session.take(("LoseResponse", follower, leader))
    whose = f" from {sender}" if sender else ""
    raise UsageError(f"lose: expected a response in flight to {broker_name(follower)}{whose}, seen none")


# ---------------------------------------------------------------------------------------------------------------------
# Processes, ISR, elections


@directive("crash BROKER [hw=CHECKPOINT] [leo=LOG_END] [disk=lost]", "crash b2 hw=1")
def _crash(session: Session, words: Words) -> list[str]:
    """Crash a process; its high watermark checkpoint may be old, and with ELR the end of its log may be lost."""
    if session.has_whole_controller:
        disk_kept = words.choice("disk", "kept", ("kept", "lost")) == "kept"
        return session.take(("Die", words.broker(session), int(disk_kept)))
    broker = words.broker(session)
    log = session.cluster.brokers[broker].partition.log
    log_end = words.number("leo", log.end)
    # By default the whole log is kept, and the high watermark is checkpointed as it is; never above the end of the log.
    return session.take((_action(session, "Crash"), broker, words.number("hw", min(log.hw, log_end)), log_end))


@directive("restart BROKER [elect=BROKER]", "restart b2")
def _restart(session: Session, words: Words) -> list[str]:
    """Start a process again, fenced first if its session has not ended; with ELR it registers, fenced or not."""
    if session.has_whole_controller:
        return _register(session, words)
    broker = words.broker(session)
    if session.cluster.brokers[broker].up:
        raise UsageError(f"restart: expected a broker that is down, seen {broker_name(broker)} up")
    # With ELR the registration itself takes it out of the ISR
    # (ReplicationControlManager#handleBrokerUncleanShutdown, KAFKA-18106).
    if session.profile.elr:
        return session.take(_electing(session, "Register", broker, words))
    session_goes_on = broker in session.cluster.controller.live
    lines = session.take(_electing(session, _action(session, "FenceBroker"), broker, words)) if session_goes_on else []
    return [*lines, *session.take(("Restart", broker))]


@directive("elect BROKER [told=BROKERS|nobody]", "elect b2 told=b2")
def _elect(session: Session, words: Words) -> list[str]:
    """Elect a live member of the ISR."""
    return _report(session, words, ("ElectPreferred", words.broker(session)))


@directive("fence BROKER [elect=BROKER] [told=..]", "fence b1 elect=b2")
def _fence(session: Session, words: Words) -> list[str]:
    """End a broker's session: it leaves the ISR, and leads no more."""
    broker = words.broker(session)
    if session.has_whole_controller:
        return _report(session, words, ("Fence", broker))
    return _report(session, words, _electing(session, _action(session, "FenceBroker"), broker, words))


@directive("unfence BROKER [directory=failed] [told=..]", "unfence b1")
def _unfence(session: Session, words: Words) -> list[str]:
    """Unfence a broker that is up; directory=failed: its heartbeat also says that its replica's directory failed."""
    if session.has_whole_controller:
        # One heartbeat can do both: BrokerHeartbeatRequest has WantFence and, since KIP-858, OfflineLogDirs.
        failed = words.choice("directory", arguments.NONE, (arguments.NONE, "failed")) == "failed"
        return _report(session, words, ("Unfence", words.broker(session), int(failed)))
    broker = words.broker(session)
    unfence = _action(session, "UnfenceBroker")
    # The last argument is the leader that is elected with it, if any: nobody, or the first broker that may lead.
    label = session.first_enabled((unfence, broker, elected) for elected in (UNDEFINED, *range(session.brokers)))
    if label is None:
        raise UsageError(f"unfence: expected a broker that is up and not live, seen {broker_name(broker)}")
    return _report(session, words, label)


@directive("shrink LEADER BROKERS", "shrink b1 b2,b3")
def _shrink(session: Session, words: Words) -> list[str]:
    """Propose, as the leader, an ISR without these brokers."""
    leader = words.broker(session)
    lagging = words.brokers(session)
    return session.take(("ShrinkIsr", leader, sum(1 << b for b in set(lagging))))  # a set of brokers is a bit mask


@directive("alter LEADER [told=..]", "alter b1 told=nobody")
def _alter(session: Session, words: Words) -> list[str]:
    """Send a leader's proposal to the controller, which decides it."""
    leader = words.broker(session)
    if session.has_whole_controller:
        # The third word of the label is the controller's error, which follows from the state and cannot be typed.
        proposal = ("AlterPartition", leader)
        enabled = (label for label in session.enabled() if label[:2] == proposal)
        # Where no such step is enabled, taking one without an error (0) says so.
        return _report(session, words, next(enabled, (*proposal, 0)))
    return _report(session, words, (_action(session, "AlterPartition"), leader))


def _action(session: Session, name: str) -> str:
    """Return the name of an action in the session's profile: with ELR some actions are others."""
    return ACTIONS_WITH_ELR.get(name, name) if session.profile.elr else name


def _electing(session: Session, action: str, broker: int, words: Words) -> Label:
    """Return the enabled label of an action on a broker, such as to fence it, that also elects a leader.

    The leader is the one of `elect=`; by default nobody, or where that is not possible the first broker that may lead.
    """
    option = words.option("elect", "")
    candidates = [words.broker_called(session, option)] if option else [UNDEFINED, *range(session.brokers)]  # nobody first
    label = session.first_enabled((action, broker, elected) for elected in candidates)
    if label is None:
        raise UsageError(
            f"{words.name}: expected a live broker, down or in the ISR, and for elect= a live member of the ISR; seen "
            f"{broker_name(broker)}{' elect=' + option if option else ''}"
        )
    return label


def _report(session: Session, words: Words, label: Label) -> list[str]:
    """Take a step of the controller; then let the brokers of `told=`, by default all, read the news of it.

    Return the lines of all these steps.
    """
    option = words.option("told", "everybody")
    groups = {"everybody": list(range(session.brokers)), "nobody": []}
    brokers = groups[option] if option in groups else [words.broker_called(session, name) for name in option.split(",")]
    lines = session.take(label)
    # The leader first (False sorts before True), so that the others may fetch from it at once.
    for broker in sorted(brokers, key=lambda b: b != session.cluster.controller.leader):
        while (news := session.now.next_news(broker, label)) is not None:
            lines += session.take(news)
    return lines


# ---------------------------------------------------------------------------------------------------------------------
# Requests to the whole controller


@directive("reassign BROKERS [told=..]", "reassign b1,b2", controlled=True)
def _reassign(session: Session, words: Words) -> list[str]:
    """Reassign the partition to these brokers, in this order."""
    return _report(session, words, ("Reassign", tuple(words.brokers(session))))


@directive("cancel [told=..]", "cancel", controlled=True)
def _cancel(session: Session, words: Words) -> list[str]:
    """Cancel the reassignment."""
    return _report(session, words, ("Cancel",))


@directive("set min_isr N|elr on|off [told=..]", "set min_isr 1", controlled=True)
def _set(session: Session, words: Words) -> list[str]:
    """Set min.insync.replicas of the topic; or switch eligible leader replicas on or off."""
    name = words.word(f"{arguments.MIN_ISR} or {arguments.ELR_FEATURE}")
    if name == arguments.ELR_FEATURE:
        return _report(session, words, ("SetElr", int(words.on_or_off())))
    if name != arguments.MIN_ISR:
        raise UsageError(f"set: expected {arguments.MIN_ISR} or {arguments.ELR_FEATURE}, seen {name!r}")
    return _report(session, words, ("SetMinIsr", words.integer()))


@directive("delete [told=..]", "delete", controlled=True)
def _delete(session: Session, words: Words) -> list[str]:
    """Delete the topic."""
    return _report(session, words, ("Delete",))


@directive("create BROKERS [told=..]", "create b1,b2", controlled=True)
def _create(session: Session, words: Words) -> list[str]:
    """Create the topic again on these brokers, with another topic id."""
    return _report(session, words, ("Create", tuple(words.brokers(session))))


@directive("shut-down BROKER [told=..]", "shut-down b1", controlled=True)
def _shut_down(session: Session, words: Words) -> list[str]:
    """Ask for a controlled shutdown; a broker that leads has to wait."""
    return _report(session, words, ("ShutDown", words.broker(session)))


@directive("unregister BROKER [told=..]", "unregister b1", controlled=True)
def _unregister(session: Session, words: Words) -> list[str]:
    """Unregister a broker that is down."""
    return _report(session, words, ("Unregister", words.broker(session)))


@directive("fail-directory BROKER [told=..]", "fail-directory b1", controlled=True)
def _fail_directory(session: Session, words: Words) -> list[str]:
    """Fail the directory of a replica; its broker reports that."""
    return _report(session, words, ("FailDirectory", words.broker(session)))


@directive("elect-unclean [told=..]", "elect-unclean", controlled=True)
def _elect_unclean(session: Session, words: Words) -> list[str]:
    """Elect any replica that lives; needs unclean=on."""
    return _report(session, words, ("ElectUnclean",))


@directive("read-config BROKER", "read-config b1", controlled=True)
def _read_config(session: Session, words: Words) -> list[str]:
    """Let a leader read the min.insync.replicas that it has not read yet."""
    return session.take(("ReadConfig", words.broker(session)))


# ---------------------------------------------------------------------------------------------------------------------
# What shows the cluster


@directive("show", "show")
def _show(session: Session, _words: Words) -> list[str]:
    """Show every log, the controller, what is in flight."""
    return session.show()


@directive("check", "check")
def _check(session: Session, _words: Words) -> list[str]:
    """Check every invariant."""
    return session.now.violations() or ["all invariants hold"]


@directive("judge", "judge")
def _judge(session: Session, _words: Words) -> list[str]:
    """Judge the run as a trace."""
    judgement = session.judged()
    failed = [v.rule.id for v in rule_verdicts(judgement.tallies) if v.verdict is Verdict.FAIL]
    if not failed:
        return ["the judge accepts this run"]
    firsts = {failure.rule: failure for failure in reversed(judgement.failures)}  # the first failure of each rule
    return [f"the judge rejects this run: {', '.join(failed)}"] + [
        f"{rule}: {firsts[rule].compared} expected {firsts[rule].expected}, seen {firsts[rule].actual}" for rule in failed
    ]


@directive("actions", "actions")
def _actions(session: Session, _words: Words) -> list[str]:
    """List everything that can happen now."""
    return [session.now.command(label) for label in session.enabled()]


@directive("quiet on|off", "quiet on")
def _quiet(_session: Session, _words: Words) -> list[str]:
    """Print only ok for each step."""
    return ["ok"]  # Player knows whether it is quiet


@directive("help [DIRECTIVE]", "help fetch")
def _help(_session: Session, words: Words) -> list[str]:
    """Print this table."""
    names = words.remaining(DIRECTIVES) or list(DIRECTIVES)
    return [f"{DIRECTIVES[name].usage:<46} {DIRECTIVES[name].says}" for name in names]


# ---------------------------------------------------------------------------------------------------------------------
# Single actions


def _register(session: Session, words: Words) -> list[str]:
    """Start the process, which registers, fenced; a failed directory is mended, taken out (another), or failed still."""
    directory = arguments.DIRECTORIES.index(words.choice("directory", arguments.DIRECTORIES[0], arguments.DIRECTORIES))
    return _report(session, words, ("Register", words.broker(session), directory))


def _elect_preferred(session: Session, words: Words) -> list[str]:
    """Elect the first replica, if it may lead."""
    return _report(session, words, ("ElectPreferred",))


CONTROLLED_ACTIONS = {"Register": _register, "ElectPreferred": _elect_preferred}
"""Actions of the specification that are requests to the whole controller, where there is one."""


def _action_directive(name: str) -> Directive:
    """Make the directive that takes a single action of the specification; its words are the arguments of the label."""

    def run(session: Session, words: Words) -> list[str]:
        """Take the action; the words are its arguments."""
        # Under the whole controller the action is a request with other arguments.
        if session.has_whole_controller and name in CONTROLLED_ACTIONS:
            return CONTROLLED_ACTIONS[name](session, words)
        return session.take(arguments.label_of(session, name, words))

    return Directive(
        " ".join((arguments.kebab(name), *arguments.ACTIONS[name])), arguments.kebab(name), f"The action {name}.", run
    )


DIRECTIVES.update(
    {arguments.kebab(name): _action_directive(name) for name in arguments.ACTIONS if arguments.kebab(name) not in DIRECTIVES}
)


# ---------------------------------------------------------------------------------------------------------------------
# Running them

SHOWING = {"show", "check", "judge", "actions", "help", "quiet"}
"""Directives whose lines are printed even if quiet."""


class Player:
    """Runs commands, one session at a time: `cluster` starts another."""

    def __init__(self, start: Session | None = None) -> None:
        """Begin with the session `start`; without one, `cluster` must be the first command."""
        self.session = start
        self.quiet = False

    def run(self, command: str) -> list[str]:
        """Run a command; return the lines it prints. A mistake is one of them, and leaves the session as it was."""
        session = self.session
        steps = 0 if session is None else len(session.labels)
        try:
            return self._run(arguments.parsed(command))
        except UsageError as error:
            # A shorthand may have taken some of its steps before the one that could not be taken.
            if session is not None:
                session.back_to(steps)
            return [f"error: {error}"]

    def _run(self, words: Words) -> list[str]:
        """Run a command; return its lines. Raises UsageError for a mistake, perhaps after some steps of a shorthand."""
        if words.name not in DIRECTIVES:
            raise UsageError(f"expected one of {', '.join(DIRECTIVES)}; seen {words.name!r}")
        if words.name == "cluster":
            session = new_session(words)
            # Before the session is replaced: a mistake changes nothing.
            words.nothing_left()
            self.session = session
            return ["ok"]
        if self.session is None:
            raise UsageError(f"expected `cluster` first, seen {words.name!r}; for example: {DIRECTIVES['cluster'].example}")
        if words.name == "quiet":
            quiet = words.on_or_off()
            words.nothing_left()
            self.quiet = quiet
            return ["ok"]
        lines = DIRECTIVES[words.name].run(self.session, words)
        # A word too many takes back the steps, as any mistake does (`run`).
        words.nothing_left()
        return ["ok"] if self.quiet and words.name not in SHOWING else lines
