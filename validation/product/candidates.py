"""What is offered to the judge: every event the model can tell anywhere, and each of them with one field changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegauge.traces.schema import Config, Event
from validation.acceptance import key
from validation.trace_mutants import others


@dataclass(frozen=True)
class Offer:
    """An event of the model, or one of them whose `field` was changed; "" for the model's own."""

    event: Event
    field: str = ""


def offers_of(events: Sequence[Event], config: Config) -> tuple[Offer, ...]:
    """The model's events first, in their order, then the changes that are none of them, each once."""
    seen = {key(event) for event in events}
    made = [Offer(event) for event in events]
    for event in events:
        for name, value in event.fields.items():
            for other in others(name, value, config):
                changed = replace(event, fields={**event.fields, name: other})
                if key(changed) not in seen:
                    seen.add(key(changed))
                    made.append(Offer(changed, name))
    return tuple(made)
