"""The package as one zip, for workers that do not have it.

Spark puts .zip files on the path of its workers, wheels it does not (PySpark packaging guide). The packages are regular
ones with an __init__.py: a namespace package would not be found inside a zip.
"""

import os
import zipfile
from pathlib import Path

import tidegauge

PACKAGE = Path(tidegauge.__file__).parent


def project_zip(directory: Path) -> Path:
    """Write tidegauge.zip into `directory`."""
    path = directory / "tidegauge.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for source in _sources():
            out.write(source, source.relative_to(PACKAGE.parent).as_posix())
    return path


def _sources() -> list[Path]:
    # Path.rglob stands still at links to folders, and in a checkout each room is one.
    walked = os.walk(PACKAGE, followlinks=True)
    found = [Path(folder, name) for folder, _, names in walked for name in names]
    return sorted(path for path in found if path.suffix == ".py" or path.name == "catalog.toml")
