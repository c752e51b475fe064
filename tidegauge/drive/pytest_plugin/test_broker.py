"""Every case of a driven broker: pytest --pyargs tidegauge.drive.pytest_plugin.test_broker --tidegauge-command "..."."""

from tidegauge.drive.pytest_plugin.plugin import PluginCase


def test_broker(tidegauge_case: PluginCase) -> None:
    """The broker does what the reference does."""
    tidegauge_case.check()
