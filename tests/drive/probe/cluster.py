"""Unmodified brokers as anybody starts them: KRaft, the first one with the controller, on ports that were free."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.kafka_process.process import KafkaProcess

HOST = "127.0.0.1"
PATIENCE = 120.0


@contextmanager
def cluster(build: KafkaBuild, brokers: int = 2) -> Iterator[list[int]]:
    """The ports of the brokers, when all of them listen."""
    controller, *ports = free_ports(brokers + 1)
    with ExitStack() as stack:
        for node, port in enumerate(ports, 1):
            process = stack.enter_context(closing(KafkaProcess(build.class_path, properties(node, port, controller))))
            process.start()
        for port in ports:
            listens(port)
        yield ports


def properties(node: int, port: int, controller: int) -> dict[str, object]:
    """The configuration of a broker; the first one is the controller, too."""
    listeners = [f"PLAINTEXT://{HOST}:{port}", *([f"CONTROLLER://{HOST}:{controller}"] if node == 1 else [])]
    return {
        "process.roles": "broker,controller" if node == 1 else "broker",
        "node.id": node,
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "auto.create.topics.enable": "false",
        "log.cleaner.enable": "false",
    }


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on a moment later, unless somebody is very quick."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]


def listens(port: int) -> None:
    """Wait for it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with suppress(OSError), socket.create_connection((HOST, port), 1):
            return
        assert time.monotonic() < deadline, f"nobody listens on {port} after {PATIENCE:g} s"
        time.sleep(0.1)
