"""Committed data outlives every election: an inductive invariant, for any number of brokers, epochs and offsets.

What a leader committed lies in the past of every later leader, and on every member of the ISR. Deposed leaders are in the
model with everything they can do: until they learn of a later epoch they append, answer fetches, propose ISR changes and
raise their high watermark. A fetch may be in flight for any time: it is sent, recorded and taken in separate steps, late,
out of order or twice. So is an ISR change: proposed by a leader, taken or refused by the controller, learned of later;
meanwhile a leader counts everybody who may be in the ISR. A truncation removes only what the follower does not share with
its leader, and a fetch that reads extends a prefix of the leader's log; the convergence proofs show both for the rules. High
watermarks, ISR admission and the reset of a log out of range are the rules themselves. A broker that restarts has its log or
a prefix of it, and an older high watermark, the one in its checkpoint. Records below a high watermark may be deleted.

Not modelled: two fetches of one follower in flight, ELR, unclean election.
"""

from tidegauge.spec.proofs.committed.hw import HW_CONJUNCTS, LOG_START_CONJUNCTS
from tidegauge.spec.proofs.committed.isr import ISR_CONJUNCTS
from tidegauge.spec.proofs.committed.logs import LOG_CONJUNCTS
from tidegauge.spec.proofs.committed.past import FETCH_CONJUNCTS, PAST_CONJUNCTS
from tidegauge.spec.proofs.engine.induction import Conjunct

COMMITTED_INVARIANT: tuple[Conjunct, ...] = (
    *LOG_CONJUNCTS,
    *ISR_CONJUNCTS,
    *FETCH_CONJUNCTS,
    *PAST_CONJUNCTS,
    *HW_CONJUNCTS,
    *LOG_START_CONJUNCTS,
)
