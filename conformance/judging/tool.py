"""The version of Tidegauge that runs, which reports name."""

import tomllib
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import tidegauge

PACKAGE = Path(tidegauge.__file__).parent


@cache
def tool_version() -> str:
    """Return the version of the checkout whose files run, else of the installed package, else "unknown"."""
    # A checkout may be on the path beside an older installed version: its own pyproject.toml comes first.
    of_checkout = project_table(PACKAGE.parent).get("version")
    package = installed_distribution()
    return str(of_checkout or (package.version if package else "unknown"))


def project_table(root: Path) -> dict[str, object]:
    """Return the table [project] of the pyproject.toml in a folder if it is Tidegauge's, else an empty one."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project_table", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    return project if isinstance(project, dict) and project.get("name") == "tidegauge" else {}


def installed_distribution() -> Distribution | None:
    """Return the distribution that is installed, if any."""
    try:
        return distribution("tidegauge")
    except PackageNotFoundError:
        return None
