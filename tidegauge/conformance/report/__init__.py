"""Reports: the same Report as text, JSON, JUnit XML and one HTML page."""

from tidegauge.conformance.report.html import write_html
from tidegauge.conformance.report.json_report import as_json, write_json
from tidegauge.conformance.report.junit import write_junit
from tidegauge.conformance.report.text import as_text

__all__ = ["as_json", "as_text", "write_html", "write_json", "write_junit"]
