"""Every case of a driven broker: pytest --pyargs tidegauge.drive.pytest_plugin.test_broker --tidegauge-command "..."."""

from tidegauge.drive.pytest_plugin.plugin import Case


def test_broker(tidegauge_case: Case) -> None:
    """The broker does what the reference does."""
    tidegauge_case.check()
