"""Parse the words of a command: brokers, numbers and name=value options; spell the labels of actions as commands.

A label is the name of an action and its arguments: brokers by their index (b1 is 0), a set of brokers as a bit mask, -1 for
what is undefined. ACTIONS has the kinds of the arguments.

Rules of this file

1. A word is removed when it is read. A word that is left is a mistake: a misspelled option must not be ignored.
2. An action's arguments are in the order of its label: `handle-fetch b1 b2 0` is ("HandleFetch", 0, 1, 0).
"""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from tidegauge.impl.cluster.cluster import Label
from tidegauge.impl.explorer.describe import broker_name, broker_names
from tidegauge.impl.rules import UNDEFINED
from tidegauge.util.errors import UsageError

if TYPE_CHECKING:
    from tidegauge.conformance.play.session import Session

ACTIONS: dict[str, tuple[str, ...]] = {
    "LeaderAppend": ("BROKER",),
    "SendFetch": ("BROKER",),
    "HandleFetch": ("BROKER", "BROKER", "0|1"),
    "HandleFetchResponse": ("BROKER", "BROKER"),
    "HandleDivergingResponse": ("BROKER", "BROKER"),
    "HandleOutOfRange": ("BROKER", "BROKER"),
    "TruncateToHighWatermark": ("BROKER",),
    "SendEpochRequest": ("BROKER",),
    "HandleEpochRequest": ("BROKER", "BROKER"),
    "HandleEpochResponse": ("BROKER", "BROKER"),
    "LoseResponse": ("BROKER", "BROKER"),
    "Duplicate": ("BROKER", "BROKER"),
    "HandleDuplicate": ("BROKER", "BROKER", "0|1", "EPOCH", "OFFSET", "EPOCH"),
    "LoseDisk": ("BROKER",),
    "AnswerProduce": ("BROKER", "OFFSET", "ERROR"),
    "Read": ("BROKER", "OFFSET", "OFFSET"),
    "DeleteRecords": ("BROKER", "OFFSET"),
    "ShrinkIsr": ("BROKER", "BROKERS"),
    "BecomeLeader": ("BROKER",),
    "BecomeFollower": ("BROKER",),
    "Crash": ("BROKER", "HW", "LEO"),
    "Restart": ("BROKER",),
    "FenceBroker": ("BROKER", "BROKER|none"),
    "UnfenceBroker": ("BROKER", "BROKER|none"),
    "ElectPreferred": ("BROKER",),
    "AlterPartition": ("BROKER",),
    "Stop": ("BROKER",),
    "CrashAndLose": ("BROKER", "HW", "LEO"),
    "Register": ("BROKER", "BROKER|none"),
    "FenceElr": ("BROKER", "BROKER|none"),
    "UnfenceElr": ("BROKER", "BROKER|none"),
    "AlterPartitionElr": ("BROKER",),
    "ElectLastKnown": ("BROKER",),
    "ElectAnybody": ("BROKER",),
}
"""Every action of the specification, and the network faults and clients of a played cluster, with its label's arguments."""

NONE = "none"
"""How a command spells what is undefined (-1 in a label): no broker, no epoch, no offset."""

MIN_ISR, ELR_FEATURE = "min_isr", "elr"
"""The words after `set`: what it sets."""

DIRECTORIES = ("first", "another", "failed")
"""The directory of a broker that starts, in the order MENDED, TAKEN_OUT, FAILED_STILL of impl.explorer.controller_model."""


class Words:
    """The words after a directive's name, removed one by one as they are read."""

    def __init__(self, name: str, positional: list[str], options: dict[str, str]) -> None:
        """Take the words of a directive: those without a name in order, and the options `name=value`."""
        self.name = name
        self.positional = positional
        self.options = options

    def word(self, expected: str) -> str:
        """Return the next word; `expected` is what the error says if there is none."""
        if not self.positional:
            raise UsageError(f"{self.name}: expected {expected}, seen nothing; `help {self.name}` shows how")
        return self.positional.pop(0)

    def broker(self, session: "Session") -> int:
        """Return the next word as the index of a broker."""
        return self.broker_called(session, self.word("a broker such as b1"))

    def broker_called(self, session: "Session", name: str) -> int:
        """Return the index of the broker called `name`."""
        broker_names = [broker_name(b) for b in range(session.brokers)]
        if name not in broker_names:
            raise UsageError(f"{self.name}: expected one of {', '.join(broker_names)}, seen {name!r}")
        return broker_names.index(name)

    def brokers(self, session: "Session") -> list[int]:
        """Return the next word, such as b2,b3, as the indices of brokers."""
        return [self.broker_called(session, name) for name in self.word("brokers such as b2,b3").split(",")]

    def count(self) -> int:
        """Return the next word as a count, 1 if there is none."""
        return self._integer(self.positional.pop(0), least=1) if self.positional else 1

    def integer(self) -> int:
        """Return the next word as a number."""
        return self._integer(self.word("a number"), least=0)

    def _integer(self, word: str, least: int) -> int:
        """Return a word as a number of at least `least`. Raises UsageError for any other word."""
        if not re.fullmatch(r"\d{1,4}", word) or int(word) < least:
            raise UsageError(f"{self.name}: expected a number from {least} to 9999, seen {word!r}")
        return int(word)

    def option(self, name: str, default: str) -> str:
        """Return the value of an option; `default` if it is not given."""
        return self.options.pop(name, default)

    def number(self, name: str, default: int) -> int:
        """Return the value of an option as a number; `default` if it is not given."""
        return self._integer(self.options.pop(name), least=0) if name in self.options else default

    def choice(self, name: str, default: str, choices: Collection[str]) -> str:
        """Return the value of an option that must be one of `choices`; `default` if it is not given."""
        value = self.option(name, default)
        if value not in choices:
            raise UsageError(f"{self.name}: expected {name}={'|'.join(choices)}, seen {name}={value}")
        return value

    def remaining(self, choices: Collection[str]) -> list[str]:
        """Return all words that are left, each of which must be one of `choices`."""
        words, self.positional = self.positional, []
        unknown = [word for word in words if word not in choices]
        if unknown:
            raise UsageError(f"{self.name}: expected one of {', '.join(choices)}; seen {unknown[0]!r}")
        return words

    def on_or_off(self) -> bool:
        """Return whether the next word is on; it must be on or off."""
        word = self.word("on or off")
        if word not in {"on", "off"}:
            raise UsageError(f"{self.name}: expected on or off, seen {word!r}")
        return word == "on"

    def nothing_left(self) -> None:
        """Raise UsageError if a word is left."""
        left = [*self.positional, *(f"{name}={value}" for name, value in self.options.items())]
        if left:
            raise UsageError(f"{self.name}: expected nothing more, seen {' '.join(left)!r}; `help {self.name}` shows how")


def parsed(command: str) -> Words:
    """Return a command line as its words; those with = are options."""
    name, *words = command.split() or [""]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    return Words(name, [word for word in words if "=" not in word], options)


# ---------------------------------------------------------------------------------------------------------------------
# Actions


def kebab(action: str) -> str:
    """Spell HandleFetch as handle-fetch."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", action).lower()


def label_of(session: "Session", action: str, words: Words) -> Label:
    """Return the label of an action from the words after its name; take these out of `words`."""
    return (action, *(_argument(session, kind, words) for kind in ACTIONS[action]))


def _argument(session: "Session", kind: str, words: Words) -> int:
    """Read the next argument of an action from `words`; its kind is one of those in ACTIONS."""
    match kind:
        case "BROKER":
            return words.broker(session)
        # A set of brokers is a bit mask.
        case "BROKERS":
            return sum(1 << b for b in set(words.brokers(session)))
        case "EPOCH" | "OFFSET":
            # -1 cannot be typed as a number: an epoch or offset that is undefined is spelled `none`.
            if words.positional[:1] == [NONE]:
                words.positional.pop(0)
                return UNDEFINED
            return words.integer()
        case "BROKER|none":
            if words.positional[:1] == [NONE]:
                words.positional.pop(0)
                return UNDEFINED
            return words.broker(session)
        case _:
            return words.integer()


def action_text(label: Label) -> str:
    """Return the command that takes the step of a label: ("HandleFetch", 0, 1, 0) is `handle-fetch b1 b2 0`."""
    action, *numbers = label
    # A plain Crash keeps the whole log (CrashAndLose does not): `crash` fills in its LEO.
    if action == "Crash":
        broker, hw, _ = numbers
        return f"crash {broker_name(broker)} hw={hw}"
    return " ".join((kebab(action), *(_word(kind, n) for kind, n in zip(ACTIONS[action], numbers, strict=True))))


def _word(kind: str, number: int) -> str:
    """Spell an argument of an action, of this kind, as a word of a command."""
    # A set of brokers is a bit mask.
    if kind == "BROKERS":
        return broker_names(tuple(broker for broker in range(number.bit_length()) if number >> broker & 1))
    if kind in {"EPOCH", "OFFSET"} and number == UNDEFINED:
        return NONE
    return broker_name(number) if kind.startswith("BROKER") else str(number)


def controller_action_text(label: Label) -> str:
    """Return the command that takes the step of a label under the whole controller, where some actions are requests.

    Their labels are those of impl.explorer.cluster_under_controller; a flag in them is 0 or 1.
    """
    match label:
        case ("Reassign" | "Create", replicas):
            return f"{kebab(label[0])} {broker_names(replicas)}"
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
        # The error follows from the state: only the leader is typed.
        case ("AlterPartition", b, _):
            return f"alter {broker_name(b)}"
        # A broker deletes a replica when it reads in the metadata that it has none any more.
        case ("DeleteReplica", b):
            return f"deliver {broker_name(b)} from=controller"
        case ("Fence" | "FailDirectory" | "ShutDown" | "Unregister" | "ReadConfig", b):
            return f"{kebab(label[0])} {broker_name(b)}"
        case (name,):
            return kebab(name)
        case _:
            return action_text(label)
