"""The words of a command: brokers, numbers and name=value options; and actions of `impl.cluster.cluster` spelled that way.

Rules of this file

1. A word is taken when it is read. What nobody took is a mistake: a misspelled option must not be ignored.
2. An action's arguments stand in the order of its label: `handle-fetch b1 b2 0` is ("HandleFetch", 0, 1, 0).
"""

import re
from collections.abc import Collection

from tidegauge.conformance.play.session import Session
from tidegauge.impl.cluster.cluster import Label
from tidegauge.impl.errors import UsageError
from tidegauge.impl.explored.describe import broker_name
from tidegauge.impl.rules import UNDEFINED

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
"""Every action of the specification, and the network faults and clients of a played cluster, with what its label holds."""

NONE = "none"


class Words:
    """The words behind a directive, taken one by one."""

    def __init__(self, name: str, positional: list[str], options: dict[str, str]) -> None:
        self.name = name
        self.positional = positional
        self.options = options

    def word(self, what: str) -> str:
        """The next word, which should be `what`."""
        if not self.positional:
            raise UsageError(f"{self.name}: expected {what}, saw nothing; `help {self.name}` shows how")
        return self.positional.pop(0)

    def broker(self, session: Session) -> int:
        """The next word as a broker."""
        return self.broker_called(session, self.word("a broker such as b1"))

    def broker_called(self, session: Session, name: str) -> int:
        """The index of the broker called `name`."""
        known = [broker_name(b) for b in range(session.brokers)]
        if name not in known:
            raise UsageError(f"{self.name}: expected one of {', '.join(known)}, saw {name!r}")
        return known.index(name)

    def brokers(self, session: Session) -> list[int]:
        """The next word as brokers: b2,b3."""
        return [self.broker_called(session, name) for name in self.word("brokers such as b2,b3").split(",")]

    def count(self) -> int:
        """The next word as a count, 1 when there is none."""
        return self._integer(self.positional.pop(0), 1) if self.positional else 1

    def integer(self) -> int:
        """The next word as a number."""
        return self._integer(self.word("a number"), 0)

    def _integer(self, word: str, least: int) -> int:
        if not re.fullmatch(r"\d{1,4}", word) or int(word) < least:
            raise UsageError(f"{self.name}: expected a number from {least} to 9999, saw {word!r}")
        return int(word)

    def option(self, name: str, default: str) -> str:
        """The value of an option."""
        return self.options.pop(name, default)

    def number(self, name: str, default: int) -> int:
        """The value of an option as a number."""
        return self._integer(self.options.pop(name), 0) if name in self.options else default

    def choice(self, name: str, default: str, choices: Collection[str]) -> str:
        """The value of an option that has few."""
        value = self.option(name, default)
        if value not in choices:
            raise UsageError(f"{self.name}: expected {name}={'|'.join(choices)}, saw {name}={value}")
        return value

    def names_of(self, known: Collection[str]) -> list[str]:
        """All remaining words, each one of `known`."""
        names, self.positional = self.positional, []
        unknown = [name for name in names if name not in known]
        if unknown:
            raise UsageError(f"{self.name}: expected one of {', '.join(known)}; saw {unknown[0]!r}")
        return names

    def on_or_off(self) -> bool:
        """The next word: on or off."""
        word = self.word("on or off")
        if word not in {"on", "off"}:
            raise UsageError(f"{self.name}: expected on or off, saw {word!r}")
        return word == "on"

    def nothing_left(self) -> None:
        """A word that nobody took is a mistake."""
        left = [*self.positional, *(f"{name}={value}" for name, value in self.options.items())]
        if left:
            raise UsageError(f"{self.name}: expected nothing more, saw {' '.join(left)!r}; `help {self.name}` shows how")


def parsed(command: str) -> Words:
    """A command line: name, then words, those with = as options."""
    name, *words = command.split() or [""]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    return Words(name, [word for word in words if "=" not in word], options)


# ---------------------------------------------------------------------------------------------------------------------
# Actions


def kebab(action: str) -> str:
    """HandleFetch as handle-fetch."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", action).lower()


def label_of(session: Session, action: str, words: Words) -> Label:
    """The label that an action's words spell."""
    return (action, *(_argument(session, kind, words) for kind in ACTIONS[action]))


def _argument(session: Session, kind: str, words: Words) -> int:
    match kind:
        case "BROKER":
            return words.broker(session)
        case "BROKERS":
            return sum(1 << b for b in set(words.brokers(session)))
        case "EPOCH" | "OFFSET":
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
    """A label as the command that takes it."""
    action, *numbers = label
    if action == "Crash":
        return f"crash {broker_name(numbers[0])} hw={numbers[1]}"
    return " ".join((kebab(action), *(_word(kind, n) for kind, n in zip(ACTIONS[action], numbers, strict=True))))


def _word(kind: str, number: int) -> str:
    if kind == "BROKERS":
        return ",".join(broker_name(b) for b in range(number.bit_length()) if number >> b & 1)
    if kind in {"EPOCH", "OFFSET"} and number == UNDEFINED:
        return NONE
    return broker_name(number) if kind.startswith("BROKER") else str(number)
