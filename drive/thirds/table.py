"""The third parties, in the order of the page."""

from tidegauge.drive.thirds.kfake import KFAKE
from tidegauge.drive.thirds.librdkafka import LIBRDKAFKA
from tidegauge.drive.thirds.party import Party
from tidegauge.drive.thirds.tansu import TANSU

PARTIES: tuple[Party, ...] = (KFAKE, LIBRDKAFKA, TANSU)
