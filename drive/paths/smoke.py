"""Ten steps that show whether a driven program works at all: it leads, is fetched from, follows and truncates."""

from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.drive.broker.reference import is_possible, missing_capability, take_step
from tidegauge.drive.broker.state import opened
from tidegauge.drive.contract import Capabilities, Path, Step
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import NONE, UNDEFINED

PEER = 2
TEN: Path = (
    ("metadata", BROKER, 0, 0, (BROKER, PEER)),
    ("append", 1),
    ("append", 1),
    ("fetch", PEER, 0, 0, UNDEFINED, True),
    ("fetch", PEER, 0, 1, 0, True),
    ("metadata", PEER, 1, 1, (BROKER, PEER)),
    ("fetch_response", PEER, NONE, 0, 0, (), (0, 1), None),
    ("fetch_response", PEER, NONE, 1, 0, ((1, 1, 1),), None, None),
    ("fetch_response", PEER, NONE, 2, 0, (), None, None),
    ("metadata", BROKER, 2, 2, (BROKER, PEER)),
)


def smoke(profile: Profile, capabilities: Capabilities) -> BrokerCase:
    """Return those of the ten that the broker can be given; a generation that asks for epochs first gets a response."""
    state, path = opened(Opening(), profile), []
    for wanted in TEN:
        asks: Step = ("offsets_for_leader_epoch_response", PEER, NONE, 0, 1)
        for step in (asks, wanted) if wanted[0] == "fetch_response" else (wanted,):
            if is_possible(state, step) and missing_capability(capabilities, state, step) is None:
                state, _ = take_step(state, step)
                path.append(step)
    return BrokerCase(Opening(), tuple(path))
