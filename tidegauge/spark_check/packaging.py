"""The package as one zip for workers that do not have it, with the judge's machine code for processors like the driver's.

Rules of this file

1. Spark puts .zip files on the path of its workers, wheels it does not (PySpark packaging guide). The packages are regular
   ones with an __init__.py: a namespace package would not be found inside a zip.
2. Spark fetches the zip into the directory an executor runs in, before its first task: ZIP there is on the path of the
   daemon that forks the executor's workers (spark_check.session).
3. A worker uses the machine code only under the fingerprint that its own would have: with another text, Python, Numba or
   processor it finds none and compiles.

The *machine code* is that of the judge, compiled by Numba; its *fingerprint* is a hash of all that it depends on.
"""

import os
import zipfile
from importlib.resources import files
from pathlib import Path

from tidegauge.conformance.engine.compiled import fingerprint
from tidegauge.conformance.engine.machine_code import files_of, keep

PACKAGE = Path(__file__).parents[1]
ZIP = "tidegauge.zip"
MACHINE_CODE = "machine_code"
"""The folder of the zip for it; in that a folder named by its fingerprint."""


def project_zip(directory: Path) -> Path:
    """Write the package as ZIP into `directory`, with the machine code if this machine keeps some; return its path.

    `files_of` gives the files of the machine code by name, none where nothing is kept under that fingerprint.
    """
    path, code_fingerprint = directory / ZIP, fingerprint()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for source in _sources():
            out.write(source, source.relative_to(PACKAGE.parent).as_posix())
        for name, data in files_of(code_fingerprint).items():
            out.writestr(f"{PACKAGE.name}/{MACHINE_CODE}/{code_fingerprint}/{name}", data)
    return path


def take_machine_code() -> None:
    """Store the machine code that came in the zip where this machine keeps it, if it was made for such a machine."""
    # Of this machine: code that was made for another has another folder in the zip (rule 3).
    code_fingerprint = fingerprint()
    shipped = files("tidegauge") / MACHINE_CODE / code_fingerprint
    if shipped.is_dir():
        keep(code_fingerprint, {file.name: file.read_bytes() for file in shipped.iterdir()})


def _sources() -> list[Path]:
    """Return the files that a worker needs: the modules, and the catalog of rules."""
    walked = os.walk(PACKAGE, followlinks=True)
    sources = [Path(folder, name) for folder, _, names in walked for name in names]
    return sorted(path for path in sources if path.suffix == ".py" or path.name == "catalog.toml")
