"""Reports: the same Report as text, JSON, JUnit XML and one HTML page."""

from conformance.report.html import write_html
from conformance.report.json_report import as_json, write_json
from conformance.report.junit import write_junit
from conformance.report.text import as_text

__all__ = ["as_json", "as_text", "write_html", "write_json", "write_junit"]
