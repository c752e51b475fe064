"""What can be said to a session: the TLA+ actions in kebab-case, shorthands for the usual rounds, and what looks at it.

Rules of this file

1. Every directive carries its usage, an example and a sentence; `help` prints them, so nothing else has to.
2. A mistake is answered with a line that begins with `error:`; what was asked for did not happen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidegauge.conformance.play import control_rounds, rounds
from tidegauge.conformance.play.arguments import ACTIONS, Words, kebab, label_of, parsed
from tidegauge.conformance.play.controlled_session import ControlledSession
from tidegauge.conformance.play.session import Session
from tidegauge.impl.errors import UsageError

Run = Callable[[Session, Words], list[str]]


@dataclass(frozen=True)
class Directive:
    """One command. `run` gets the session and the words behind the name, and returns what to print.

    `controlled` takes its place in a session of `cluster control=on`.
    """

    usage: str
    example: str
    says: str
    run: Run
    controlled: Run | None = None

    @property
    def name(self) -> str:
        """The first word of its usage."""
        return self.usage.split()[0]

    def of(self, session: Session) -> Run:
        """What it does to a session of this kind."""
        return self.controlled if self.controlled is not None and isinstance(session, ControlledSession) else self.run


def _cluster(_session: Session, _words: Words) -> list[str]:
    """A new cluster that b1 leads; also max_fetch=N (records), min_isr=N, clients=on, last_resort=last-known|anybody.

    thread_truncates=on: a truncation that needs no response is a step of the fetcher thread.
    control=on: under the whole controller, with replicas=BROKERS, partition_zero=N, unclean=on, directories=2.
    """
    return ["ok"]


def _quiet(_session: Session, _words: Words) -> list[str]:
    """Steps print ok only."""
    return ["ok"]


def _help(_session: Session, words: Words) -> list[str]:
    """This table."""
    names = words.names_of(DIRECTIVES) or list(DIRECTIVES)
    return [f"{DIRECTIVES[name].usage:<46} {DIRECTIVES[name].says}" for name in names]


def _directive(usage: str, example: str, run: Run, controlled: Run | None = None) -> Directive:
    return Directive(usage, example, (run.__doc__ or "").strip(), run, controlled)


def _of_controller(usage: str, example: str, controlled: Run) -> Directive:
    """One that only a cluster under the whole controller has."""

    def run(_session: Session, words: Words) -> list[str]:
        raise UsageError(
            f"{words.name}: expected a cluster under the whole controller, saw another; begin with: {CONTROLLED}"
        )

    return Directive(usage, example, (controlled.__doc__ or "").strip(), run, controlled)


def _action(name: str) -> Directive:
    def run(session: Session, words: Words) -> list[str]:
        return session.take(label_of(session, name, words))

    return Directive(" ".join((kebab(name), *ACTIONS[name])), kebab(name), f"The action {name}.", run)


CONTROLLED = "cluster brokers=3 control=on profile=elr min_isr=2"

SHORTHANDS = (
    _directive("cluster brokers=N profile=NAME SWITCH=on|off", "cluster brokers=3 response_epoch_checked=off", _cluster),
    _directive("write LEADER [COUNT]", "write b1 2", rounds.write),
    _directive("produce LEADER [COUNT]", "produce b1", rounds.write),
    _directive("fetch FOLLOWER [lost=response] [join=no]", "fetch b2 lost=response", rounds.fetch),
    _directive("deliver BROKER [from=BROKER|controller]", "deliver b2 from=b1", rounds.deliver),
    _directive("lose FOLLOWER [from=BROKER]", "lose b2", rounds.lose),
    _directive("crash BROKER [hw=CHECKPOINT] [disk=lost]", "crash b2 hw=1", rounds.crash, control_rounds.die),
    _directive("restart BROKER [elect=BROKER]", "restart b2", rounds.restart, control_rounds.register),
    _directive("elect BROKER [told=BROKERS|nobody]", "elect b2 told=b2", rounds.elect),
    _directive("fence BROKER [elect=BROKER] [told=..]", "fence b1 elect=b2", rounds.fence, control_rounds.fence),
    _directive("unfence BROKER [directory=failed] [told=..]", "unfence b1", rounds.unfence, control_rounds.unfence),
    _directive("shrink LEADER BROKERS", "shrink b1 b2,b3", rounds.shrink),
    _directive("alter LEADER [told=..]", "alter b1 told=nobody", rounds.alter, control_rounds.alter),
    _of_controller("reassign BROKERS [told=..]", "reassign b1,b2", control_rounds.reassign),
    _of_controller("cancel [told=..]", "cancel", control_rounds.cancel),
    _of_controller("set min_isr N|elr on|off [told=..]", "set min_isr 1", control_rounds.set_config),
    _of_controller("delete [told=..]", "delete", control_rounds.delete),
    _of_controller("create BROKERS [told=..]", "create b1,b2", control_rounds.create),
    _of_controller("shut-down BROKER [told=..]", "shut-down b1", control_rounds.shut_down),
    _of_controller("unregister BROKER [told=..]", "unregister b1", control_rounds.unregister),
    _of_controller("fail-directory BROKER [told=..]", "fail-directory b1", control_rounds.fail_directory),
    _of_controller("elect-unclean [told=..]", "elect-unclean", control_rounds.elect_unclean),
    _of_controller("read-config BROKER", "read-config b1", control_rounds.read_config),
    _directive("show", "show", rounds.show),
    _directive("check", "check", rounds.check),
    _directive("judge", "judge", rounds.judge),
    _directive("actions", "actions", rounds.actions),
    _directive("quiet on|off", "quiet on", _quiet),
    _directive("help [DIRECTIVE]", "help fetch", _help),
)

DIRECTIVES = {d.name: d for d in SHORTHANDS}
DIRECTIVES.update({d.name: d for d in map(_action, ACTIONS) if d.name not in DIRECTIVES})
"""Every directive by name; a shorthand takes the place of the action it is named like."""

for name, of_controller in (("register", control_rounds.register), ("elect-preferred", control_rounds.elect_preferred)):
    DIRECTIVES[name] = replace(DIRECTIVES[name], controlled=of_controller)

LOOKING = {"show", "check", "judge", "actions", "help", "quiet"}


class Player:
    """Runs commands, one session at a time; `start` is there before any `cluster` command."""

    def __init__(self, start: Session | None = None) -> None:
        self.session = start
        self.quiet = False

    def run(self, command: str) -> list[str]:
        """What a command prints. A mistake is printed too, and changes nothing."""
        session = self.session
        taken = 0 if session is None else len(session.labels)
        try:
            return self._run(parsed(command))
        except UsageError as error:
            if session is not None:
                session.back_to(taken)
            return [f"error: {error}"]

    def _run(self, words: Words) -> list[str]:
        if words.name not in DIRECTIVES:
            raise UsageError(f"expected one of {', '.join(DIRECTIVES)}; saw {words.name!r}")
        if words.name == "cluster":
            session = rounds.new_session(words)
            words.nothing_left()
            self.session = session
            return ["ok"]
        if self.session is None:
            raise UsageError(f"expected `cluster` first, saw {words.name!r}; for example: {DIRECTIVES['cluster'].example}")
        if words.name == "quiet":
            quiet = words.on_or_off()
            words.nothing_left()
            self.quiet = quiet
            return ["ok"]
        directive = DIRECTIVES[words.name]
        lines = directive.of(self.session)(self.session, words)
        words.nothing_left()
        return ["ok"] if self.quiet and words.name not in LOOKING else lines
