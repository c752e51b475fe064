"""Lines as people have them: exported by a log platform, quoted in a mail or an issue, behind what a console or grep adds."""
# ruff: noqa: E501

import html
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kafka_logs.test_writers import follows, leads, line
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs import read
from tidegauge.traces.kafka_logs.capture import shipped
from validation.metamorphic.cases import logs

LINES = [
    line("10:00:03,000", leads(1, 5)).rstrip(),
    line("10:00:04,000", follows(1, 6, 2)).rstrip(),
    line("10:00:05,000", leads(1, 7)).rstrip(),
]
STAMP = "2026-09-12T10:00:03.000Z"
EXPORTS: dict[str, Callable[[str], str]] = {
    "fluent-bit": lambda text: json.dumps({"log": text, "kubernetes": {"pod_name": "kafka-1"}}),
    "elastic": lambda text: json.dumps({"_index": "k", "_source": {"@timestamp": STAMP, "message": text, "host": {"name": "b1"}}}),
    "google": lambda text: json.dumps({"textPayload": text, "timestamp": STAMP, "resource": {"labels": {"pod_name": "kafka-1"}}}),
    "cloudwatch-json": lambda text: json.dumps({"timestamp": 1757671200000, "message": text, "logStreamName": "b1"}),
    "cloudwatch": lambda text: f"{STAMP} kafka/b-1 {text}",
    "loki": lambda text: json.dumps({"line": text, "labels": {"pod": "kafka-1"}}),
    "logcli": lambda text: f'{STAMP} {{app="kafka", pod="kafka-1"}} {text}',
    "kibana": lambda text: '"Sep 12, 2026 @ 10:00:03.000","kafka-1","{}"'.format(text.replace('"', '""')),
    "mail": lambda text: f"> {text}",
    "mail-in-html": lambda text: f"&gt; {html.escape(text)}",
    "backticks": lambda text: f"`{text}`",
    "list": lambda text: f"* {text}",
    "indented": lambda text: f"    {text}",
    "rancher": lambda text: f"9/12/2026, 10:00:03 AM {text}",
    "rancher-localised": lambda text: f"2026年9月12日 上午10:00:03{text}",
    "grep": lambda text: f"broker-1/server.log:12:{text}",
    "with-line-numbers": lambda text: text.replace("state.change.logger)", "state.change.logger:856)"),
    "class-only": lambda text: text.replace("(state.change.logger)", "(logger)"),
    "linkedin": lambda text: f"2026/09/12 10:00:{text[18:20]}.000 INFO [logger] [main] [kafka-server] [] {text[31:].rpartition(' (')[0]}",
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_a_line_is_found_in_what_surrounds_it(name: str, tmp_path: Path) -> None:
    """Without --layout, whatever the file is called: the same lines of the same node."""
    (tmp_path / "export.txt").write_text("".join(f"{EXPORTS[name](text)}\n" for text in LINES))
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "server.log").write_text("\n".join(LINES))
    plain, found = read(tmp_path / "plain"), read(tmp_path / "export.txt")
    assert not found.problems
    assert found.summary.nodes == plain.summary.nodes == (1,)
    assert [(event.event, event.fields) for trace in found.traces for event in trace.events] == [
        (event.event, event.fields) for trace in plain.traces for event in trace.events
    ]


def test_what_grep_found_in_folders_is_of_the_node_of_the_folder(tmp_path: Path) -> None:
    """Its server.log and its request.log, which names no node, however deep they lie."""
    found = [
        f"/var/log/kafka/{path}:{number}:{line}\n"
        for path, lines in logs(shipped()["4.2.0/a-steady"]).items()
        for number, line in enumerate(lines, 1)
        if path.endswith(".log")
    ]
    (tmp_path / "found.txt").write_text("".join(found))
    report = check([tmp_path])
    assert report.verdict is Verdict.PASS
    assert [life.split()[1] for life in report.inputs[0].covered] == ["1", "2", "3", "100"]
