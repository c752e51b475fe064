"""What each directive does to a session whose controller is all of impl.control.

Rule of this file: a directive is one request, or one thing that happens to a broker, and then the news of it reaches `told`,
by default everybody. Whoever leads no more answers its clients first.
"""

from tidegauge.conformance.play.arguments import NONE, Words, action_text, kebab
from tidegauge.conformance.play.controlled_session import ControlledSession
from tidegauge.conformance.play.session import Session
from tidegauge.impl.cluster.cluster import Label
from tidegauge.impl.errors import UsageError
from tidegauge.impl.explored.control_cluster import ControlBounds
from tidegauge.impl.explored.describe import broker_name, names
from tidegauge.impl.profiles import Profile

MIN_ISR, ELR_FEATURE = "min_isr", "elr"

CONTROLLED = ("replicas", "partition_zero", "unclean", "directories")
"""Options of a cluster whose controller is all of impl.control."""

DIRECTORIES = ("first", "another", "failed")
"""Of a broker that starts: impl.explored.control_cluster has MENDED, TAKEN_OUT, FAILED_STILL."""

NEWS = ("BecomeLeader", "BecomeFollower", "DeleteReplica", "ReadConfig")
"""What a broker reads, in the order of the metadata log. The response to a proposal tells no configuration."""


def controlled_session(words: Words, profile: Profile, brokers: int, min_isr: int, *, clients: bool) -> ControlledSession:
    """`cluster control=on`: the replicas, all brokers if none are named; partition_zero=N where this is partition 1."""
    named = words.option("replicas", "")
    everybody = [f"b{b + 1}" for b in range(brokers)]
    wanted = named.split(",") if named else everybody
    unknown = next((name for name in wanted if name not in everybody), None)
    if unknown is not None or len(set(wanted)) != len(wanted):
        raise UsageError(f"cluster: expected replicas of {', '.join(everybody)}, each once; saw replicas={named}")
    bounds = ControlBounds(
        tuple(everybody.index(name) for name in wanted),
        brokers,
        words.number("partition_zero", 0),
        min_isr=min_isr,
        unclean=words.choice("unclean", "off", ("on", "off")) == "on",
        disks_fail=words.choice("directories", "1", ("1", "2")) == "2",
    )
    if bounds.disks_fail and (bounds.partition_zero or len(wanted) != brokers):
        raise UsageError("cluster: expected all brokers as replicas where they have two directories, saw other options")
    return ControlledSession(bounds, profile, clients=clients)


def reassign(session: Session, words: Words) -> list[str]:
    """The partition shall be on these brokers, in this order."""
    return _reported(session, words, ("Reassign", tuple(words.brokers(session))))


def cancel(session: Session, words: Words) -> list[str]:
    """The reassignment is taken back."""
    return _reported(session, words, ("Cancel",))


def set_config(session: Session, words: Words) -> list[str]:
    """min.insync.replicas of the topic is another one; or eligible leader replicas are switched on or off."""
    name = words.word(f"{MIN_ISR} or {ELR_FEATURE}")
    if name == ELR_FEATURE:
        return _reported(session, words, ("SetElr", int(words.on_or_off())))
    if name != MIN_ISR:
        raise UsageError(f"set: expected {MIN_ISR} or {ELR_FEATURE}, saw {name!r}")
    return _reported(session, words, ("SetMinIsr", words.integer()))


def delete(session: Session, words: Words) -> list[str]:
    """The topic is deleted."""
    return _reported(session, words, ("Delete",))


def create(session: Session, words: Words) -> list[str]:
    """The topic is created again, with another topic id: on these brokers."""
    return _reported(session, words, ("Create", tuple(words.brokers(session))))


def fence(session: Session, words: Words) -> list[str]:
    """Its session ends."""
    return _reported(session, words, ("Fence", words.broker(session)))


def unfence(session: Session, words: Words) -> list[str]:
    """It is heard again; with directory=failed the same heartbeat says that the replica's directory failed."""
    failed = words.choice("directory", NONE, (NONE, "failed")) == "failed"
    return _reported(session, words, ("Unfence", words.broker(session), int(failed)))


def fail_directory(session: Session, words: Words) -> list[str]:
    """The directory of its replica fails, and it says so."""
    return _reported(session, words, ("FailDirectory", words.broker(session)))


def die(session: Session, words: Words) -> list[str]:
    """The process dies; disk=lost: the log with it."""
    kept = words.choice("disk", "kept", ("kept", "lost")) == "kept"
    return session.take(("Die", words.broker(session), int(kept)))


def shut_down(session: Session, words: Words) -> list[str]:
    """It wants to stop; while it leads it is told to wait."""
    return _reported(session, words, ("ShutDown", words.broker(session)))


def register(session: Session, words: Words) -> list[str]:
    """The process starts and registers, fenced; a directory that failed is mended, taken out (another), or failed still."""
    directory = DIRECTORIES.index(words.choice("directory", DIRECTORIES[0], DIRECTORIES))
    return _reported(session, words, ("Register", words.broker(session), directory))


def unregister(session: Session, words: Words) -> list[str]:
    """The controller forgets a broker that is down."""
    return _reported(session, words, ("Unregister", words.broker(session)))


def elect_preferred(session: Session, words: Words) -> list[str]:
    """The first replica leads, if it may."""
    return _reported(session, words, ("ElectPreferred",))


def elect_unclean(session: Session, words: Words) -> list[str]:
    """Somebody leads, whoever it is; where unclean=on."""
    return _reported(session, words, ("ElectUnclean",))


def alter(session: Session, words: Words) -> list[str]:
    """A leader's proposal reaches the controller."""
    b = words.broker(session)
    label = next((label for label in session.enabled() if label[:2] == ("AlterPartition", b)), ("AlterPartition", b, 0))
    return _reported(session, words, label)


def read_config(session: Session, words: Words) -> list[str]:
    """A leader reads the min.insync.replicas that it has not read yet."""
    return session.take(("ReadConfig", words.broker(session)))


def _reported(session: Session, words: Words, label: Label) -> list[str]:
    """The step, then the news of it, the leader first."""
    heard = words.option("told", "everybody")
    everybody = {"everybody": list(range(session.brokers)), "nobody": []}
    brokers = everybody[heard] if heard in everybody else [words.broker_called(session, name) for name in heard.split(",")]
    lines = session.take(label)
    read = NEWS[:-1] if label[0] == "AlterPartition" else NEWS
    for b in sorted(brokers, key=lambda b: b != session.cluster.controller.leader):
        while (news := _news(session, b, read)) is not None:
            lines += session.take(news)
    return lines


def _news(session: Session, b: int, read: tuple[str, ...]) -> Label | None:
    """The next thing that a broker reads, or has to say before it does."""
    enabled = session.enabled()
    reads = next((label for name in read for label in enabled if label == (name, b)), None)
    leads, waiting = session.cluster.brokers[b].leads, session.cluster.waiting
    if reads is not None or leads or not waiting or not waiting[b]:
        return reads
    return next((label for label in enabled if label[:2] == ("AnswerProduce", b)), None)


# ---------------------------------------------------------------------------------------------------------------------
# Labels as commands


def command_of(session: Session, label: Label) -> str:
    """The command that takes a step."""
    return control_text(label) if isinstance(session, ControlledSession) else action_text(label)


def control_text(label: Label) -> str:
    """The command that takes a step under the whole controller."""
    match label:
        case ("Reassign" | "Create", replicas):
            return f"{kebab(label[0])} {names(replicas)}"
        case ("SetMinIsr", value):
            return f"set {MIN_ISR} {value}"
        case ("SetElr", level):
            return f"set {ELR_FEATURE} {'on' if level else 'off'}"
        case ("Die", b, kept):
            return f"crash {broker_name(b)}{'' if kept else ' disk=lost'}"
        case ("Unfence", b, fails):
            return f"unfence {broker_name(b)}{' directory=failed' if fails else ''}"
        case ("Register", b, directory):
            return f"register {broker_name(b)}{f' directory={DIRECTORIES[directory]}' if directory else ''}"
        case ("AlterPartition", b, _):
            return f"alter {broker_name(b)}"
        case ("DeleteReplica", b):
            return f"deliver {broker_name(b)} from=controller"
        case ("Fence" | "FailDirectory" | "ShutDown" | "Unregister" | "ReadConfig", b):
            return f"{kebab(label[0])} {broker_name(b)}"
        case (name,):
            return kebab(name)
        case _:
            return action_text(label)
