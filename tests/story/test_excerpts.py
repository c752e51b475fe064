"""An excerpt tells the same as the whole or less, never something else; the form of the lines changes nothing."""

import gzip
import html
import json
import random
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tidegauge.story.story import story_of
from tidegauge.traces.kafka_logs.parsing.exports import unwrapped
from validation.metamorphic.stories import contradictions

CASES = (
    "zk-0.10-unclean",
    "zk-1.1-acks1",
    "zk-2.8-rolling",
    "zk-2.8-uncommitted",
    "zk-2.8-wiped",
    "zk-3.9-recreated",
    "kraft-3.9-wiped",
    "kraft-4.1-power",
    "08-unclean-drill-kraft",
    "13-acks1-loss-4.1",
    "05-unclean-selector-0.11",
)
SEEDS = range(3)
Texts = dict[str, list[str]]


def texts_of(folder: Path) -> Texts:
    """The lines of every file of a case."""
    texts = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
            texts[path.relative_to(folder).as_posix().removesuffix(".gz")] = content.decode().splitlines()
    return texts


def written(texts: Texts, folder: Path) -> Path:
    """Write them to a folder."""
    for name, lines in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def one_node(texts: Texts, seed: int) -> Texts:
    folders = sorted({name.partition("/")[0] for name in texts})
    chosen = folders[seed % len(folders)]
    return {name: lines for name, lines in texts.items() if name.partition("/")[0] == chosen}


def a_grep(texts: Texts, seed: int) -> Texts:
    words = ("Truncating|high watermark", "-0", "WARN|ERROR|FATAL|starts at", "kafka.log|state.change.logger")
    pattern = re.compile(words[seed % len(words)])
    return {name: [line for line in lines if pattern.search(line)] for name, lines in texts.items()}


def lines_left_out(texts: Texts, seed: int) -> Texts:
    chance = random.Random(seed)
    return {name: [line for line in lines if chance.random() < 0.7] for name, lines in texts.items()}


def the_end(texts: Texts, seed: int) -> Texts:
    return {name: lines[len(lines) * (seed + 1) // 5 :] for name, lines in texts.items()}


def trimmed(texts: Texts, seed: int) -> Texts:
    """By a viewer, in the middle of a word or of a number."""
    width = (140, 170, 200)[seed % 3]
    return {
        name: [line if len(line) <= width else line[: width - 1] + "…" * (seed % 2) for line in lines]
        for name, lines in texts.items()
    }


def in_containers(texts: Texts, _seed: int) -> Texts:
    prefixed = []
    for name, lines in texts.items():
        writer = name.partition("/")[0].ljust(12)
        prefixed += [(line[:24], f"{writer}| {line}") for line in lines if line.startswith("[2")]
    return {"compose.log": [line for _, line in sorted(prefixed, key=lambda pair: pair[0])]}


def with_crlf(texts: Texts, _seed: int) -> Texts:
    return {name: [f"{line}\r" for line in lines] for name, lines in texts.items()}


def in_json(texts: Texts, _seed: int) -> Texts:
    def quoted(line: str) -> str:
        message = line.replace("\\", "\\\\").replace('"', '\\"')
        return f'{{"log": "{message}\\n", "stream": "stdout"}}'

    return {name: [quoted(line) for line in lines if line.startswith("[2")] for name, lines in texts.items()}


def pasted(texts: Texts, _seed: int) -> Texts:
    return {name: [f"> `{line}`" for line in lines] for name, lines in texts.items()}


def wrapped_by_mail(texts: Texts, _seed: int) -> Texts:
    return {
        name: [
            f"> {part}"
            for line in lines
            if line.startswith("[2")
            for part in textwrap.wrap(line, 78, break_long_words=False)
        ]
        for name, lines in texts.items()
    }


def newest_first(texts: Texts, _seed: int) -> Texts:
    """A CSV of Kibana."""

    def row(line: str) -> str:
        when = datetime.fromisoformat(line[1:20]).strftime("%b %d, %Y @ %H:%M:%S") + "." + line[21:24]
        quoted = line[25:].strip().replace('"', '""')
        return f'"{when}","{quoted}"'

    return {name: [row(line) for line in reversed(lines) if line.startswith("[2")] for name, lines in texts.items()}


def escaped(texts: Texts, _seed: int) -> Texts:
    return {name: [html.escape(line) for line in lines] for name, lines in texts.items()}


def _by_host(texts: Texts) -> dict[str, list[str]]:
    hosts: dict[str, list[str]] = {}
    for name, lines in texts.items():
        hosts.setdefault(name.partition("/")[0], []).extend(lines)
    return hosts


def below_headings(texts: Texts, _seed: int) -> Texts:
    """As `tail` prints the ends of several files."""
    return {"tail.txt": [row for name, lines in texts.items() for row in (f"==> /mnt/{name} <==", *lines, "")]}


def of_ansible(texts: Texts, _seed: int) -> Texts:
    hosts = _by_host(texts)
    return {"ad-hoc.txt": [row for host, lines in hosts.items() for row in (f"{host} | CHANGED | rc=0 >>", *lines)]}


def in_opentelemetry(texts: Texts, _seed: int) -> Texts:
    """One document of the collector's file exporter, hosts as attributes of the resource."""
    resources = [
        {
            "resource": {"attributes": [{"key": "k8s.pod.name", "value": {"stringValue": host}}]},
            "scopeLogs": [{"logRecords": [{"body": {"stringValue": line}} for line in lines]}],
        }
        for host, lines in _by_host(texts).items()
    ]
    return {"otlp.json": [json.dumps({"resourceLogs": resources})]}


def in_a_query_of_azure(texts: Texts, _seed: int) -> Texts:
    rows = [[host, line] for host, lines in _by_host(texts).items() for line in lines if line.startswith("[2")]
    table = {"columns": [{"name": "PodName"}, {"name": "LogEntry"}], "rows": rows}
    return {"query.json": json.dumps({"tables": [table]}, indent=1).splitlines()}


def in_yaml(texts: Texts, _seed: int) -> Texts:
    """As `gcloud logging read` prints it."""
    return {
        "logs.yaml": [
            row
            for host, lines in _by_host(texts).items()
            for line in lines
            if line.startswith("[2")
            for row in (
                *("---", "insertId: a", "resource:", "  labels:", f"    pod_name: {host}"),
                "textPayload: '{}'".format(line.replace("'", "''")),
            )
        ]
    }


def in_log4j2_json(texts: Texts, _seed: int) -> Texts:
    def document(line: str) -> str:
        second = int(datetime.fromisoformat(f"{line[1:20]}+00:00").timestamp())
        instant = {"epochSecond": second, "nanoOfSecond": int(line[21:24]) * 1_000_000}
        level, _, message = line[26:].partition(" ")
        message, _, logger = message.rpartition(" (")
        return json.dumps({"instant": instant, "level": level, "loggerName": logger.rstrip(")"), "message": message})

    return {name: [document(line) for line in lines if line.startswith("[2")] for name, lines in texts.items()}


def in_logfmt(texts: Texts, _seed: int) -> Texts:
    lines = [(line, host) for host, lines in _by_host(texts).items() for line in lines if line.startswith("[2")]
    rows = [f"ts={line[1:11]}T{line[12:20]}.{line[21:24]}Z host={host} msg={json.dumps(line)}" for line, host in lines]
    return {"logfmt.txt": rows}


def in_parts_of_a_container(texts: Texts, _seed: int) -> Texts:
    """As CRI divides long lines."""

    def parts(line: str) -> Iterator[str]:
        stamp, width = f"{line[1:11]}T{line[12:20]}.{line[21:24]}000000Z stdout", 90
        for at in range(0, len(line), width):
            yield f"{stamp} {'P' if at + width < len(line) else 'F'} {line[at : at + width]}"

    return {name: [part for line in lines if line.startswith("[2") for part in parts(line)] for name, lines in texts.items()}


def in_jira(texts: Texts, _seed: int) -> Texts:
    def escaped(line: str) -> str:
        return re.sub(r"[\[\]{}_*]", lambda character: f"\\{character[0]}", line)

    return {name: ["{noformat}", *map(escaped, lines), "{noformat}"] for name, lines in texts.items()}


def in_html(texts: Texts, _seed: int) -> Texts:
    """A page whose lines are one."""
    return {
        name: [f"<div class='c'><pre><code>{'<br/>'.join(map(html.escape, lines))}</code></pre></div>"]
        for name, lines in texts.items()
    }


def on_windows(texts: Texts, _seed: int) -> Texts:
    """A directory with a backslash before an n."""

    def there(line: str) -> str:
        return re.sub(r"(?<=[=( '])/\w[\w./\-]*", lambda path: "C:\\new" + path[0].replace("/", "\\"), line)

    return {name: [there(line) for line in lines] for name, lines in texts.items()}


Row = Callable[[str, str], str]


def _rows(row: Row) -> Callable[[Texts, int], Texts]:
    """One file with the lines of all brokers, each with the pod that a log platform knows."""

    def exported(texts: Texts, _seed: int) -> Texts:
        return {
            "export.txt": [
                row(f"pod-{name.partition('/')[0]}", line)
                for name, lines in texts.items()
                for line in lines
                if line.startswith("[2")
            ]
        }

    return exported


PLATFORMS = {
    "logcli": lambda pod, line: f'{line[1:11]}T{line[12:20]}Z {{app="kafka", pod="{pod}"}} {line}',
    "splunk": lambda pod, line: '"{}",{},/var/log/server.log,"{}"'.format(line[1:20], pod, line.replace('"', '""')),
    "journald": lambda pod, line: json.dumps({"_HOSTNAME": pod, "MESSAGE": line}),
    "journald, coloured": lambda pod, line: json.dumps({"_HOSTNAME": pod, "MESSAGE": list(line.encode())}),
    "journald's export": lambda pod, line: f"__CURSOR=s\n_HOSTNAME={pod}\nMESSAGE={line}\n",
    "datadog": lambda pod, line: json.dumps({"attributes": {"host": pod, "message": line}}, indent=1),
    "datadog's interface": lambda pod, line: json.dumps(
        {
            "attributes": {
                "status": "info",
                "timestamp": f"{line[1:11]}T{line[12:20]}.{line[21:24]}Z",
                "host": pod,
                "message": line[25:],
            }
        }
    ),
    "elastic": lambda pod, line: json.dumps({"_source": {"host": {"name": pod}, "message": line}}),
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("case", ["zk-1.1-acks1", "zk-2.8-wiped", "kraft-3.9-wiped"])
def test_a_log_platform_names_the_writer_of_a_line(case: str, platform: str, wild: Path, tmp_path: Path) -> None:
    whole = story_of([wild / case])
    other = story_of([written(_rows(PLATFORMS[platform])(texts_of(wild / case), 0), tmp_path)])
    assert contradictions(other, [whole]) == []
    assert [(one.partition, one.node, one.first, one.end, one.committed) for one in other.losses] == [
        (one.partition, one.node, one.first, one.end, one.committed) for one in whole.losses
    ]
    assert whole.losses


@pytest.mark.parametrize("width", range(60, 90, 3))
def test_a_mail_whose_lines_are_full_is_joined_between_words(width: int) -> None:
    logged = [
        f"[2026-01-01 10:00:00,00{n}] INFO [Log partition=x-{n}, dir=/var/lib/kafka/data] Completed load of log with 1 "
        f"segments, log start offset 0 and log end offset 44{n} in 72 ms (kafka.log.Log)"
        for n in range(8)
    ]
    wrapped = [
        part for line in logged for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    ]
    joined = unwrapped(wrapped)
    assert joined is not None
    assert [line for _, line in joined] == logged


EXCERPTS = (one_node, a_grep, lines_left_out, the_end, trimmed)
FORMS = (
    *(in_containers, with_crlf, in_json, pasted, wrapped_by_mail, newest_first, escaped, below_headings, of_ansible),
    *(in_opentelemetry, in_a_query_of_azure, in_yaml, in_log4j2_json, in_logfmt),
    *(in_parts_of_a_container, in_jira, in_html),
)


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("case", CASES)
def test_an_excerpt_says_the_same_or_less(
    case: str, excerpt: Callable[[Texts, int], Texts], wild: Path, tmp_path: Path
) -> None:
    texts = texts_of(wild / case)
    whole = story_of([wild / case])
    for seed in SEEDS:
        part = story_of([written(excerpt(texts, seed), tmp_path / str(seed))])
        assert contradictions(part, [whole]) == [], f"seed {seed}"


@pytest.mark.parametrize("form", FORMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("case", CASES)
def test_the_form_of_the_lines_changes_nothing(
    case: str, form: Callable[[Texts, int], Texts], wild: Path, tmp_path: Path
) -> None:
    texts = {name: lines for name, lines in texts_of(wild / case).items() if any(line.startswith("[2") for line in lines)}
    if not texts:
        pytest.skip("not in Kafka's own layout")
    whole, other = story_of([wild / case]), story_of([written(form(texts, 0), tmp_path)])
    assert contradictions(other, [whole]) == []
    assert [(one.partition, one.first, one.end, one.committed, one.why) for one in other.losses] == [
        (one.partition, one.first, one.end, one.committed, one.why) for one in whole.losses
    ]


@pytest.mark.parametrize("case", ["zk-2.8-wiped", "kraft-4.1-power"])
def test_directories_of_windows_are_read(case: str, wild: Path, tmp_path: Path) -> None:
    whole, other = story_of([wild / case]), story_of([written(on_windows(texts_of(wild / case), 0), tmp_path)])
    assert [(one.kind, one.partition, one.node) for one in other.entries] == [
        (one.kind, one.partition, one.node) for one in whole.entries
    ]
    assert [(one.first, one.end, one.why) for one in other.losses] == [(one.first, one.end, one.why) for one in whole.losses]


@pytest.mark.parametrize("name", ["logs.zip", "logs.tar"])
def test_an_archive_is_named_and_nothing_is_told_of_it(name: str, wild: Path, tmp_path: Path) -> None:
    folder = wild / "zk-1.1-acks1"
    shutil.make_archive(str(tmp_path / "logs"), name.rpartition(".")[2], folder)
    story = story_of([tmp_path])
    assert not story.has_entries
    assert [(one.path, one.do) for one in story.problems] == [(name, "unpack it; it is not read")]


def test_the_comparison_can_fail(wild: Path) -> None:
    whole = story_of([wild / "08-unclean-drill-kraft"])
    assert contradictions(whole, [whole]) == []
    other = story_of([wild / "08-unclean-drill-kraft"])
    other.losses[0].end = 58001
    assert len(contradictions(other, [whole])) == 1
    other.entries[0].fields["leader"] = 3
    assert len(contradictions(other, [whole])) == 2
