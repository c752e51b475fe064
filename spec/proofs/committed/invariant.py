"""Committed data outlives every election: an inductive invariant, for any number of brokers, epochs and offsets.

What a leader committed lies in the past of every later leader, and on every member of the ISR. Deposed leaders are in the
model with all they can do: until they learn of a later epoch they append, answer fetches, propose ISR changes and raise
their high watermark. Fetches are in flight as long as they like: they are asked, recorded and taken in steps of their own,
late, out of order or twice. So are ISR changes: proposed by a leader, taken or refused by the controller, heard of later; a
leader counts everybody who may be in the ISR meanwhile. A truncation removes only what the follower does not share with its
leader, and a fetch that reads extends a prefix of the leader's log; both are what the convergence proofs say of the rules.
High watermarks, ISR admission and the reset of a log out of range are the rules themselves. A broker that restarts has its
log or a prefix of it, and an older high watermark, the one in its checkpoint. Whatever lies below a high watermark may be
deleted.

Not in it: two fetches of one follower in flight, ELR, unclean election.
"""

from tidegauge.spec.proofs.committed.hw import HIGH_WATERMARKS, LOG_STARTS
from tidegauge.spec.proofs.committed.isr import ISR
from tidegauge.spec.proofs.committed.logs import LOGS
from tidegauge.spec.proofs.committed.past import FETCHES, PAST
from tidegauge.spec.proofs.engine.induction import Conjunct

INVARIANT: tuple[Conjunct, ...] = (*LOGS, *ISR, *FETCHES, *PAST, *HIGH_WATERMARKS, *LOG_STARTS)
