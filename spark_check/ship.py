"""The project's packages as one zip, for workers that do not have them.

Spark puts .zip files on the path of its workers, wheels it does not (PySpark packaging guide). The packages are regular
ones with an __init__.py: a namespace package would not be found inside a zip.
"""

import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("impl", "spec", "traces", "conformance", "spark_check")


def project_zip(directory: Path) -> Path:
    """Write tidegauge.zip into `directory`."""
    path = directory / "tidegauge.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for package in PACKAGES:
            for source in sorted((ROOT / package).rglob("*.py")):
                out.write(source, source.relative_to(ROOT).as_posix())
    return path
