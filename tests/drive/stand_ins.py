"""The reference in place of a broker's process, or of a controller's: what a recording is made of, without Kafka."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.controller.contract import ControllerCase
from tidegauge.drive.controller.reference import reference as controller_reference
from tidegauge.drive.controller.steps import controller_capabilities
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.runner.player import ReferenceNode
from tidegauge.impl.releases import profile_named


class Broker(ReferenceNode[BrokerCase]):
    """It has no log."""

    def log_lines(self, _: object) -> Sequence[str]:
        return ()


@contextmanager
def running(node: Any) -> Iterator[Any]:
    """As what is started."""
    yield node


def broker(does: str) -> Callable[..., AbstractContextManager[Broker]]:
    """What is started in place of a release: what another one does."""
    return lambda build, *_, **__: running(
        Broker(reference(profile_named(does)), EVERYTHING._replace(name=f"Kafka {build.version}"))
    )


def controller(does: str) -> Callable[[KafkaBuild], AbstractContextManager[ReferenceNode[ControllerCase]]]:
    """The same of its controller."""
    expected = controller_reference(profile_named(does))
    return lambda build: running(ReferenceNode(expected, controller_capabilities(f"Kafka {build.version} (controller)")))
