"""The third parties, in the order of the page."""

from tidegauge.drive.third_parties.kfake import KFAKE
from tidegauge.drive.third_parties.librdkafka import LIBRDKAFKA
from tidegauge.drive.third_parties.party import Party
from tidegauge.drive.third_parties.tansu import TANSU

PARTIES: tuple[Party, ...] = (KFAKE, LIBRDKAFKA, TANSU)
