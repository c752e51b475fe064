"""The pytest plugin, as a project has it that uses it: in a process of its own."""

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tidegauge.util.junit import read_cases

ROOT = Path(__file__).resolve().parents[2]
ADAPTER = ROOT / "tidegauge" / "drive" / "adapters" / "python" / "adapter.py"
NAME = "tidegauge.drive.pytest_plugin.plugin"
INSTALLED = any(point.value == NAME for point in entry_points(group="pytest11"))
PLUGIN = [] if INSTALLED else ["-p", NAME]
TEST = "def test_mine(tidegauge_case):\n    tidegauge_case.check()\n"


def pytest_run(place: Path, *arguments: str, bug: bool = False) -> subprocess.CompletedProcess[str]:
    """A pytest of the project in `place`, over the toy broker."""
    command = f"{sys.executable} {ADAPTER}{' --bug' if bug else ''}"
    (place / "pytest.ini").write_text(
        f"[pytest]\ntidegauge_command = {command}\ntidegauge_graphs = small\ntidegauge_walks = 30\n", encoding="utf-8"
    )
    everything = [sys.executable, "-m", "pytest", "-q", "-rA", "--rootdir", str(place), "-c", str(place / "pytest.ini")]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*everything, *PLUGIN, "-p", "no:cacheprovider", *arguments],
        cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_each_case_is_a_test_with_an_id_and_a_right_broker_passes(tmp_path: Path) -> None:
    """From the module that is shipped: nothing has to be written."""
    done = pytest_run(tmp_path, "--pyargs", "tidegauge.drive.pytest_plugin.test_broker", "--junitxml", "it.xml")
    assert done.returncode == 0, done.stdout
    assert read_cases(tmp_path / "it.xml")[0] == "toy", "the summary of a job is headed by the broker"
    names = {case.get("name") for case in ElementTree.parse(tmp_path / "it.xml").iter("testcase")}
    assert {"test_broker[smoke]", "test_broker[graph/small/HandleFetch]", "test_broker[rule/HW-02]"} <= names
    assert {"test_broker[scenario/020_forked_log_is_truncated_on_fetch@b1]"} <= names
    assert {"test_broker[walks/1/0-59]", "test_broker[rule/TRUNC-01]"} <= names
    assert {"test_broker[refusal/HandleFetch]", "test_broker[distinguishing/keeps_remote_leo=on]"} <= names
    assert not [name for name in names if name and "rule/CTRL" in name]
    assert "HW-10: no path applies it" in done.stdout  # the toy broker's log does not start above 0
    assert "failed" not in done.stdout


def test_a_bug_fails_its_cases_and_the_rule_and_is_told(tmp_path: Path) -> None:
    """With the story that `tidegauge drive` tells."""
    (tmp_path / "test_mine.py").write_text(TEST, encoding="utf-8")
    done = pytest_run(tmp_path, bug=True)
    assert done.returncode == 1
    assert "same as   applies_diverging=on" in done.stdout
    assert "FAILED test_mine.py::test_mine[rule/HW-06]" in done.stdout
    assert "PASSED test_mine.py::test_mine[graph/small/HandleFetch]" in done.stdout


def test_a_rule_that_decides_beside_what_differs_passes(tmp_path: Path) -> None:
    """A high watermark that is too high says nothing of the epochs that the leader notes in the same step."""
    (tmp_path / "test_mine.py").write_text(TEST, encoding="utf-8")
    wrong = f"{sys.executable} -m tidegauge.drive.transports.serve --profile skips-equal"
    done = pytest_run(tmp_path, "-k", "rule", "--tidegauge-command", wrong)
    failed = re.findall(r"^FAILED .*\[rule/(\w+)-", done.stdout, re.MULTILINE)
    assert "HW" in failed
    assert not {"EPOCH", "ISR", "TRUNC"} & set(failed)


def test_expected_failures_pass_until_they_are_stale(tmp_path: Path) -> None:
    """A case that passes again fails the run, and so does an id that there is no more."""
    (tmp_path / "test_mine.py").write_text(TEST, encoding="utf-8")
    expected = tmp_path / "expected.txt"
    expected.write_text("# ours\nwalks/1/0-59  # KAFKA-14704\n", encoding="utf-8")
    only = ["-k", "walks", "--tidegauge-expected-failures", "expected.txt"]
    assert "1 xfailed" in pytest_run(tmp_path, *only, bug=True).stdout
    done = pytest_run(tmp_path, *only)
    assert done.returncode == 1
    assert "XPASS(strict)" in done.stdout
    assert "KAFKA-14704" in done.stdout
    expected.write_text("flaky: walks/1/0-59  # now and then\n", encoding="utf-8")
    assert pytest_run(tmp_path, *only).returncode == 0
    assert "1 xfailed" in pytest_run(tmp_path, *only, bug=True).stdout
    expected.write_text("\nwalks/7/0-59\n", encoding="utf-8")
    done = pytest_run(tmp_path, *only)
    assert done.returncode == 2
    assert "expected.txt:2: expected the id of a case; seen 'walks/7/0-59'" in done.stdout + done.stderr


def test_the_broker_is_a_fixture_for_tests_of_ones_own(tmp_path: Path) -> None:
    """And a program that is at fault is told without a traceback."""
    (tmp_path / "test_mine.py").write_text(
        "def test_it(tidegauge_broker):\n    assert tidegauge_broker.capabilities.name == 'toy'\n", encoding="utf-8"
    )
    assert pytest_run(tmp_path).returncode == 0
    (tmp_path / "test_mine.py").write_text(TEST, encoding="utf-8")
    done = pytest_run(tmp_path, "--tidegauge-command", "/no/such/program")
    assert done.returncode == 2
    assert "expected '/no/such/program' to start" in done.stdout + done.stderr
    done = pytest_run(tmp_path, "--tidegauge-walks", "many")
    assert "tidegauge_walks: expected a whole number; seen 'many'" in done.stdout + done.stderr


def test_it_is_inert_where_nobody_asks_for_it(tmp_path: Path) -> None:
    """Nothing of the suite is imported, and no program is started."""
    (tmp_path / "test_mine.py").write_text(
        "import sys\n\ndef test_it():\n"
        "    assert not [name for name in sys.modules if name.startswith('tidegauge.') and 'plugin' not in name\n"
        "                and name not in ('tidegauge.drive', 'tidegauge.util', 'tidegauge.util.version')]\n",
        encoding="utf-8",
    )
    done = pytest_run(tmp_path, "--tidegauge-command", "/no/such/program")
    assert done.returncode == 0, done.stdout


def test_without_a_command_the_cases_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TEST, encoding="utf-8")
    done = pytest_run(tmp_path, "--tidegauge-command", "")
    assert done.returncode == 0
    assert "expected --tidegauge-command" in done.stdout


@pytest.mark.skipif(not INSTALLED, reason="the checkout is not installed: its entry points are those of another one")
def test_it_is_an_entry_point(tmp_path: Path) -> None:
    assert "--tidegauge-command" in pytest_run(tmp_path, "--help").stdout
