"""Every case of the suite is a test here: `pip install tidegauge pytest && pytest`."""


def test_watermark(tidegauge_case):
    tidegauge_case.check()
