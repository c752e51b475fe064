"""What `doctor --logging` prints is what the reader needs: no logger is forgotten, no level too low."""

import gzip
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.conformance.engine.judge import judge
from tidegauge.traces.columns import to_columns
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.loggers import NEEDED, configuration, levels
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE
from tidegauge.traces.schema import Trace

ROOT = Path(__file__).resolve().parents[2]
ORDER = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
LINE = re.compile(r"\[[^\]]*\] ([A-Z]+) .*\(([\w.$]+)\)\s*")


def configured(release: str) -> dict[str, str]:
    """Logger -> level, read back from the text that is printed."""
    text = "\n".join(configuration(release))
    if release.startswith("3"):
        return dict(re.findall(r"^log4j\.logger\.([\w.]+)=([A-Z]+)", text, re.MULTILINE))
    return dict(re.findall(r"^      - name: ([\w.]+)\n        level: ([A-Z]+)", text, re.MULTILINE))


def as_configured(release: str, text: str, without: str = "") -> str:
    """The lines of a broker that is configured so: the longest name that a logger begins with counts, else INFO."""
    levels_of = configured(release)
    levels_of.pop(without, None)
    kept = []
    for line in text.splitlines(keepends=True):
        found = LINE.match(line)
        names = [] if found is None else [name for name in levels_of if f"{found[2]}.".startswith(f"{name}.")]
        level = levels_of[max(names, key=len)] if names else "INFO"
        if found is None or ORDER.index(found[1]) >= ORDER.index(level):
            kept.append(line)
    return "".join(kept)


@pytest.mark.parametrize("name", ["3.4.0/b-kill-leader", "4.2.0/b-kill-leader", "4.2.0/d-unclean"])
def test_brokers_configured_so_log_all_that_is_read(name: str, tmp_path: Path, capture: Callable[[str], Capture]) -> None:
    """A capture that logged more gives the same events from the lines of these loggers alone."""
    before = after = 0
    for path in sorted(shipped()[name].rglob("*")):
        copy = tmp_path / path.relative_to(shipped()[name]).parent / path.name.removesuffix(".gz")
        if not path.is_file():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if copy.suffix == ".log" and not copy.name[0].isdigit():
            before += len(content)
            content = as_configured(name.partition("/")[0], content.decode()).encode()
            after += len(content)
        copy.write_bytes(content)
    assert after < before
    found = read(tmp_path)
    assert broken(found) == broken(capture(name))
    for one, other in zip(found.traces, capture(name).traces, strict=True):
        assert heard(one) == heard(other)


def heard(trace: Trace) -> Counter[tuple[int, str]]:
    """Events of each node; not whether a response is an event of its own: other lines of its thread decide that."""
    return Counter((event.node, event.event) for event in trace.events if event.event != "AnswerFetch")


def broken(found: Capture) -> set[str]:
    tallies = [judge(to_columns([trace], trace.config), trace.config).tallies for trace in found.traces]
    return {rule for one in tallies for rule, tally in one.items() if tally.failed}


@pytest.mark.parametrize("release", ["3.x", "4.x"])
def test_every_logger_of_the_patterns_is_there(release: str) -> None:
    """By its class; `logger` is the end of state.change.logger and kafka.request.logger, the controller is a package."""
    classes = {name.rpartition(".")[2] for name in configured(release)}
    of_controller = {f"{part}ControlManager" for part in ("Replication", "Cluster", "Configuration")} | {"QuorumController"}
    assert {logger for _, logger, _ in TABLE} - of_controller <= classes
    assert "org.apache.kafka.controller" in configured(release)
    assert configured(release) == {name: logger.level for name, logger in levels(release)}


def test_a_level_that_is_too_low_is_seen(capture: Callable[[str], Capture]) -> None:
    """The check above can fail: without a row the lines of its logger are gone."""
    text = (shipped()["4.2.0/d-unclean"] / "n1" / "server.log.gz").read_bytes()
    whole = gzip.decompress(text).decode()
    for name in ("kafka.cluster.Partition", "kafka.server.ReplicaFetcherThread"):
        assert len(as_configured("4.2.0", whole, without=name)) < len(as_configured("4.2.0", whole))


def test_the_page_names_the_same_levels() -> None:
    """docs/kafka-logs.md, section 1."""
    page = (ROOT / "docs" / "kafka-logs.md").read_text(encoding="utf-8").partition("## 2.")[0]
    for logger in NEEDED:
        for name in logger.names[4][:1]:
            row = next((line for line in page.splitlines() if f"`{name}`" in line), None)
            assert row is not None or logger.level == "INFO", name
            assert row is None or logger.level in row, name


@pytest.mark.parametrize(("release", "code"), [("4.x", 0), ("3.6.1", 0), ("3", 0), ("2.8", 2), ("five", 2), ("4.x.1.2", 2)])
def test_the_command(release: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A release whose logs are not read is refused."""
    assert main(["doctor", "--logging", release]) == code
    assert ("kafka.cluster.Partition" in capsys.readouterr().out) is (code == 0)
