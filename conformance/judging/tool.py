"""Which version of Tidegauge runs: what reports say they were made by."""

import tomllib
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import tidegauge

PACKAGE = Path(tidegauge.__file__).parent


@cache  # what runs does not change while it runs
def tool_version() -> str:
    """The version of the checkout whose files run, else of the package that was installed."""
    of_checkout = project_table(PACKAGE.parent).get("version")
    found = installed_distribution()
    return str(of_checkout or (found.version if found else "unknown"))


def project_table(root: Path) -> dict[str, object]:
    """The table [project] of the pyproject.toml in a folder, if it is Tidegauge's; else nothing."""
    try:
        found = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project_table", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    return found if isinstance(found, dict) and found.get("name") == "tidegauge" else {}


def installed_distribution() -> Distribution | None:
    """The distribution that was installed, if one was."""
    try:
        return distribution("tidegauge")
    except PackageNotFoundError:
        return None
