"""What a user may write: read by mypy and pyright in strict mode, and run."""

from collections.abc import Mapping
from typing import Any

import tidegauge as tg


class Silent:
    """A replica that does nothing it is told."""

    def take(self, step: str, **arguments: Any) -> Mapping[str, Any]:  # noqa: ARG002
        return {"leo": 0, "hw": 0}


class SilentBroker:
    name = "silent"
    can = ("metadata",)
    reports = ("leo", "hw")

    def replica(self) -> Silent:
        return Silent()


def broken_rules(place: str) -> list[str]:
    report: tg.Report = tg.check(place, release="3.4.0", topics=["alpha"])
    lines = [f"{failure.rule}: {cause.says} {cause.at}" for failure in report.failures for cause in failure.because]
    rules: tuple[tg.RuleResult, ...] = report.rules
    return [*lines, *(rule.rule for rule in rules if rule.failed)]


def longest(place: str) -> int:
    traces: tuple[tg.Trace, ...] = tg.read(place)
    event: tg.Event = traces[0].events[0]
    config: tg.Config = traces[0].config
    return len(config.nodes) + event.node + max(len(trace.events) for trace in traces)


def smoke(broker: tg.PythonBroker) -> tg.DriveReport:
    try:
        return tg.drive(broker, smoke=True)
    except tg.TidegaugeError as problem:
        raise SystemExit(str(problem)) from None


def driven() -> str:
    return smoke(SilentBroker()).verdict


def command() -> int:
    return tg.drive(["./my-adapter"], graphs=["small"], walks=10).exit_code
