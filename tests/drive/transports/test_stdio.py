"""A driven program is compared while it keeps to the contract, and blamed when it does not: no traceback, no hang."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.paths.graphs import cover_of
from tidegauge.drive.paths.selection import smoke_case
from tidegauge.drive.paths.walks import walks
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.run import run
from tidegauge.drive.transports.lines import DrivenProgramError, parse_handshake, parse_line, parse_report
from tidegauge.drive.transports.stdio import StdioNode
from tidegauge.impl.profiles import FETCH_TRUNCATION

SERVE = [sys.executable, "-m", "tidegauge.drive.transports.serve", "--profile", "fetch-truncation"]
SMOKE = [smoke_case(FETCH_TRUNCATION, EVERYTHING)]
HELLO = '{"contract":1,"name":"x","can":["metadata","append"],"reports":["leo"]}'


def program(body: str) -> list[str]:
    """A driven program in a few lines: `line()` reads, `say()` writes."""
    head = (
        "import sys,time,json\n"
        "def line(): return sys.stdin.readline()\n"
        "def say(text): sys.stdout.write(text+'\\n'); sys.stdout.flush()\n"
        f"line()\nHELLO={HELLO!r}\n"
    )
    return [sys.executable, "-S", "-c", head + body]


def blame(command: list[str], timeout: float = 5.0, cases: Sequence[BrokerCase] = SMOKE) -> str:
    """What a program is blamed for when the ten steps, or other cases, are played."""
    with StdioNode(command, timeout) as node, pytest.raises(DrivenProgramError) as blamed:
        play(node, cases, reference())
    return str(blamed.value)


def test_the_reference_behind_stdio_agrees_over_the_cover_and_walks() -> None:
    """Side by side, in one process that is started once."""
    cases = [*cover_of("small", FETCH_TRUNCATION).cases, *walks(1, 30, FETCH_TRUNCATION)]
    with StdioNode(SERVE) as node:
        played = play(node, cases, reference())
        assert played.differences == ()
        assert played.steps == sum(len(case.path) + 1 for case in cases)
        assert play(node, SMOKE, reference()).steps == 11


@pytest.mark.parametrize(
    ("fault", "says"),
    [("hw-not-clamped", "KAFKA-3003"), ("diverging-end-one-low", "KAFKA-7897"), ("joins-one-low", "KAFKA-15221")],
)
def test_a_fault_behind_stdio_is_found_shrunk_and_named(fault: str, says: str) -> None:
    cases = [*cover_of("small", FETCH_TRUNCATION).cases, *walks(1, 30, FETCH_TRUNCATION)]
    with StdioNode([*SERVE, "--fault", fault]) as node:
        found = run(node, cases, reference(FETCH_TRUNCATION))
    assert found.exit_code == 1
    assert min(failure.shown.at for failure in found.failures) <= 12
    assert any(says in failure.text for failure in found.failures)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", "expected a handshake; seen '' on line 0 of its stdout, it ended with exit code 0"),
        ("sys.exit(7)", "it ended with exit code 7"),
        ("raise SystemError('out of luck')", "out of luck"),
        ("say('hello')", "expected a line of JSON; seen 'hello' on line 1"),
        ("say('[1]')", "expected a JSON object"),
        ("say('{\"contract\":9}')", 'expected a handshake with "contract": 1'),
        ("say('{\"contract\":true}')", 'expected a handshake with "contract": 1'),
        ("say(HELLO.replace('append','fly'))", "not 'fly'"),
        ("say(HELLO.replace('\"metadata\",',''))", '"can" with at least metadata'),
        ("say(HELLO.replace('\"leo\"',''))", '"reports" with at least one of'),
        ("say(HELLO.replace('\"name\":\"x\",',''))", '"name"'),
        ("say(HELLO)\nsay('{}')\nline()", "expected a report of one of the partitions 1; seen '{}' on line 2"),
        ('say(HELLO)\nline()\nsay(\'{"p":1,"leo":"0"}\')', 'in "leo" an integer'),
        ("say(HELLO)\nline()\nsay('{\"p\":1}')", 'a report with "leo", which the handshake promised'),
        ('say(HELLO)\nline()\nsay(\'{"p":1,"unsupported":"open"}\')', "which the handshake promised"),
        ('say(HELLO)\nline()\nsay(\'{"p":1,"leo":NaN}\')', "expected a line of JSON"),
        ("say(HELLO)\nline()\nsay('['*100000)", "expected a line of JSON"),
        ('say(HELLO)\nline()\nsay(\'{"p":true,"leo":0}\')', "one of the partitions 1"),
        ("say(HELLO)\nsys.stdin.close()", "it ended with exit code 0"),
        ("import os\nsay(HELLO)\nline()\nos.kill(os.getpid(), 9)", "it ended with exit code -9"),
        ("say(HELLO)\nline()\nsys.stderr.write('x'*9000+'the end')\nsys.exit(3)", "the end"),
    ],
)
def test_a_program_at_fault_is_blamed_with_what_it_wrote(body: str, says: str) -> None:
    assert says in blame(program(body))


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ('{"error":0,"hw":0,"log_start":0,"records":[]}', 'in "result" "diverging", null, or [epoch, end offset]'),
        (
            '{"error":0,"hw":0,"log_start":0,"records":null,"diverging":null}',
            'in "result" "records", a list of [base offset,',
        ),
        ('{"error":0,"log_start":0}', 'in "result" "hw", an integer'),
    ],
)
def test_a_result_is_blamed_for_its_wrong_field_and_to_the_line_that_it_answers(result: str, says: str) -> None:
    """Null is what a nil slice of Go becomes."""
    hello = HELLO.replace("append", "fetch").replace("leo", "result")
    body = (
        "for text in sys.stdin:\n    step = json.loads(text)\n    result = RESULT if step['step'] == 'fetch' else 'null'\n"
    )
    body += "    say('{\"p\":%d,\"result\":%s}' % (step['p'], result))"
    led_and_fetched = SMOKE[0]._replace(path=(SMOKE[0].path[0], SMOKE[0].path[3]))
    message = blame(program(f"RESULT={result!r}\nsay({hello!r})\n{body}"), cases=(led_and_fetched,))
    assert says in message
    assert 'to {"p":1,"step":"fetch","peer":2,"current_leader_epoch":0,' in message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("time.sleep(60)", "expected a handshake within 1.5 s; seen '' on line 0 of its stdout, it is silent"),
        ("say(HELLO)\ntime.sleep(60)", "expected a report to the opening of partition 1 within 1.5 s"),
        ("say(HELLO)\nline()\nsys.stdout.write('{\"p\":')\nsys.stdout.flush()\ntime.sleep(60)", "seen '{\"p\":'"),
        ("import os\nsay(HELLO)\nos.close(1)\ntime.sleep(60)", "it closed its stdout"),
        (
            "say(HELLO)\nwhile True: sys.stdout.write('x'); sys.stdout.flush(); time.sleep(0.05)",
            "of partition 1 within 1.5 s; seen 'xx",
        ),
        ("import os\nsay(HELLO)\nif os.fork(): sys.exit(4)\ntime.sleep(4)", "it is silent"),
    ],
)
def test_a_program_that_hangs_is_ended_within_its_time(body: str, says: str) -> None:
    began = time.monotonic()
    assert says in blame(program(body), 1.5)
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("flood", ["while True: sys.stdout.write('x'*65536)", 'while True: say(\'{"p":2,"leo":0}\')'])
def test_a_program_that_floods_is_blamed_and_not_read_to_the_end(flood: str) -> None:
    says = blame(program(f"say(HELLO)\nline()\n{flood}"), 20.0)
    assert "lines of at most 1,048,576 bytes" in says or "one of the partitions 1" in says


def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    """C3 of the hostile cases: a child that nobody would end, and that keeps no pipe open."""
    child = tmp_path / "child"
    body = (
        "import os\nif not (pid := os.fork()):\n    os.closerange(0, 3)\n    time.sleep(600)\n"
        f"open({str(child)!r}, 'w').write(str(pid))\nsay(HELLO)\nline()"
    )
    blame(program(body))
    pid = int(child.read_text())
    deadline = time.monotonic() + 10
    # One that has ended stays a zombie until its parent asks, which may be the container's first process.
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_blame_stays_short_however_long_what_is_wrong_is() -> None:
    assert len(blame(program("say(HELLO.replace('append', 'fly' * 5000))"))) < 1000


def test_lines_that_nobody_asked_for_are_blamed() -> None:
    """Written at once, so that all of them are there when the last step is answered."""
    says = blame(program("say(HELLO)\nline()\nsay('\\n'.join([json.dumps({'p': 1, 'leo': 0})] * 50))"))
    assert "expected nothing more, for every step is answered" in says


def test_a_program_that_floods_its_stderr_is_driven_all_the_same() -> None:
    body = """
say(HELLO)
while text := line():
    given = json.loads(text)
    sys.stderr.write("x" * 200000)
    if given["step"] != "close":
        say(json.dumps({"p": given["p"], "leo": 0}))
"""
    with StdioNode(program(body)) as node:
        found = play(node, [smoke_case(FETCH_TRUNCATION, node.capabilities)], reference())
    assert [one.at for one in found.differences] == [2]


def test_a_program_that_promises_what_it_does_not_do_differs() -> None:
    """It answers everything as if nothing had happened."""
    body = """
say(HELLO.replace('"leo"', '"leo","hw","ends","requests"'))
while text := line():
    if "close" not in text:
        say(json.dumps({"p": json.loads(text)["p"], "leo": 0, "hw": 0, "ends": [], "requests": {}}))
"""
    with StdioNode(program(body)) as node:
        found = play(node, [smoke_case(FETCH_TRUNCATION, node.capabilities)], reference())
    assert [(one.at, one.fields) for one in found.differences] == [(1, ("ends",))]


def test_a_program_that_cannot_be_started_is_bad_usage() -> None:
    assert "expected '/no/such/program' to start" in blame(["/no/such/program"])


def test_a_program_that_says_another_thing_the_second_time_is_blamed(tmp_path: Path) -> None:
    """It is started again after it was stopped."""
    body = f"""
import os
mark = {str(tmp_path / "mark")!r}
say(HELLO if os.path.exists(mark) else HELLO.replace("append", "fetch"))
open(mark, "w").close()
line()
"""
    with StdioNode(program(body)) as node:
        assert "fetch" in node.capabilities.can
        node.close()
        with pytest.raises(DrivenProgramError, match="the handshake that it gave before"):
            play(node, SMOKE, reference())


# ---------------------------------------------------------------------------------------------------------------------
# Garbage


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(["p", *EVERYTHING.reports, "error", "contract", "can", "name"])
LINES = st.binary(max_size=60) | st.builds(lambda found: json.dumps(found).encode(), JSON | st.dictionaries(FIELDS, JSON))


@given(LINES)
@settings(max_examples=100)
def test_garbage_is_blamed_or_is_what_the_contract_says(line: bytes) -> None:
    """A line that is no handshake and no report raises one error, and nothing else."""
    for read in (_handshake, _report):
        says = _blamed(read, line)
        assert says == "" or says.startswith("the driven program: expected")
        assert len(says) < 1500


def _blamed(read: Callable[[bytes], object], line: bytes) -> str:
    try:
        read(line)
    except DrivenProgramError as blamed:
        return str(blamed)
    return ""


def _handshake(line: bytes) -> Capabilities:
    return parse_handshake(line, "on line 1")


def _report(line: bytes) -> None:
    step = ("fetch", 2, 0, 0, -1, True)
    parse_report(parse_line(line, "on line 2"), step, EVERYTHING, line, "on line 2")


@given(st.lists(LINES, max_size=4), st.booleans())
@settings(max_examples=10)
def test_a_program_that_writes_garbage_is_blamed(written: list[bytes], greets: bool) -> None:
    """Through a real process, which ends or is ended."""
    text = (HELLO.encode() + b"\n" if greets else b"") + b"\n".join(written) + b"\n"
    assert "the driven program: expected" in blame(program(f"sys.stdout.buffer.write({text!r})"))
