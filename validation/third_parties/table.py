"""The third parties, in the order of the page."""

from validation.third_parties.kfake import KFAKE
from validation.third_parties.librdkafka import LIBRDKAFKA
from validation.third_parties.party import Party
from validation.third_parties.tansu import TANSU

PARTIES: tuple[Party, ...] = (KFAKE, LIBRDKAFKA, TANSU)
