"""The notebook in examples/ runs from top to bottom, and says what the library says."""

from pathlib import Path

import pytest

nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "tidegauge/drive/examples/incident.ipynb"


# A kernel on the loopback warns, and the clients of Jupyter close their sockets late.
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.reads(NOTEBOOK.read_text(encoding="utf-8"), 4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept: they would be of another day"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = "\n".join(output.get("text") or output["data"]["text/plain"] for output in outputs)
    assert "('FAIL', " in shown
    assert "HW-06" in shown
    assert "KAFKA-14704" in shown
    assert "[('HW-01', 1), ('HW-05', 1)]" in shown
