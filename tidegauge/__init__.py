"""Tidegauge tells whether a broker's high watermark can be trusted."""

__version__ = "0.1.0"
