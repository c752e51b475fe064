"""The models whose product with the judge is walked, with the bounds of their cfg or tighter ones.

Graphs are the explorer's: `./run conformance` and `./run graphs` show that TLC finds the same ones.
"""

from dataclasses import dataclass

from tidegauge.conformance.from_tlc.graph_comparison import Compared, start_of
from tidegauge.impl.explorer.explore import Graph, explore_from
from tidegauge.impl.profiles import Rules
from tidegauge.spec.tlc.models import find_model
from tidegauge.traces.from_model.behaviour import config_for
from tidegauge.traces.from_model.impl_walks import bounds_of
from tidegauge.traces.schema import Config
from validation.partial_traces import NOTHING, Omission
from validation.product.automaton import Automaton, automaton

TINY = {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 0}


@dataclass(frozen=True)
class Model:
    """A bounded model, and the rules that the known hole of its profile breaks.

    `room` is that of the judge, as much as the model can need. With less it forgets earlier, and lets more pass.
    """

    name: str
    compared: Compared
    known: frozenset[str] = frozenset()
    room: int = 16

    def graph(self, rules: Rules | None = None) -> Graph:
        """Return its states and steps; `rules` replaces rules of the implementation."""
        return explore_from(start_of(self.compared, rules))

    def automaton(self, graph: Graph | None = None, omission: Omission = NOTHING) -> Automaton:
        """Return the automaton of its traces, or of what the omission leaves of them."""
        explored = graph or self.graph()
        return automaton(explored.states, explored.labels, explored.edges, self.compared.profile, omission)

    @property
    def config(self) -> Config:
        """The Config of its traces."""
        bounds = bounds_of(find_model(self.compared.model), **self.compared.constants)
        return config_for(bounds.brokers, self.compared.profile, min_isr=bounds.min_insync_replicas)


SMALLEST = (
    Model("fetch-truncation, no crash", Compared("Small", "fetch-truncation", TINY), room=8),
    Model("kip320, no crash", Compared("Kip320", "kip320", TINY), room=8),
)
"""Those of the main job, which takes a quarter less time with half the room: all of it is restored before each event."""
MODELS = (
    *SMALLEST,
    Model("Refines", Compared("Refines", "fetch-truncation", {})),
    Model("HwOnly", Compared("HwOnly", "hw-only", {"MaxEpoch": 1, "MaxCrash": 1}), frozenset({"DATA-01", "DATA-02"})),
    Model("Kip101", Compared("Kip101", "kip101", {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 1})),
    Model("Kip279", Compared("Kip279", "kip279", {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 1})),
    Model("Kip320", Compared("Kip320", "kip320", {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 1})),
    Model("AcksAll", Compared("AcksAll", "fetch-truncation", {"MaxLog": 1, "MinIsr": 2})),
    Model("MovingStart", Compared("MovingStart", "fetch-truncation", {"MaxCrash": 0})),
    Model("Kip966", Compared("Kip966", "elr", {"MaxEpoch": 1})),
    Model("Epochs", Compared("Epochs", "fetch-truncation", {"MaxEpoch": 2})),
    Model("Small", Compared("Small", "fetch-truncation", {})),
)
