"""A high watermark inside a batch, as a path: since 4.0 whoever reads finds its position, and that is the batch's base.

Rules of this file

1. The peer does what a right one may. It leads, has committed a batch of five records, and a client has deleted the first
   three; it came back from a crash with an older checkpoint, so its high watermark is its log start
   (UnifiedLog#updateHighWatermark). That is what its fetch response says.
2. Between the third step and the fourth nothing happens but a read: `read_by_consumer` of drive/broker/reference.py.
3. Then the broker leads. A client cannot delete what it could before, and a follower whose disk was lost begins at the log
   start: what is recorded of it is the batch's base, too. Its next fetch mends it all.
"""

from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.impl.rules import NONE, UNDEFINED

CLAIM = "A high watermark inside a batch falls to the batch's base when somebody reads, below the log start (since 4.0)."
PEER, EVERYBODY = 2, (1, 2)
INSIDE, END = 3, 5


def case() -> BrokerCase:
    """The path. Before 4.0 its high watermark goes 0, 3, 5; since then 0, 3, 0, 5."""
    return BrokerCase(
        Opening((PEER,)),
        (
            ("metadata", PEER, 0, 0, EVERYBODY),
            ("fetch_response", PEER, NONE, 0, 0, ((0, END - 1, 0),), None, None),
            ("fetch_response", PEER, NONE, INSIDE, INSIDE, (), None, None),
            ("lose_response", PEER),
            ("metadata", BROKER, 1, 1, EVERYBODY),
            ("delete_records", INSIDE),
            ("fetch", PEER, 1, INSIDE, UNDEFINED, True),
            ("fetch", PEER, 1, END, 0, True),
        ),
    )
