------------------------------ MODULE MCReplication ------------------------------
(***********************************************************************************
 `Replication` with bounds, for TLC; the variants of its decisions that older profiles
 and negative models put in by name; and the report of each transition that spec/graph.py
 reads.

 Bounds stand around the actions of `Replication`, on the state after the step.  Only
 what perturbs is bounded (appends, elections, crashes), never what heals.
 ***********************************************************************************)
EXTENDS Replication, TLC

CONSTANTS
  b1, b2, b3,     \* model values; Broker is a set of the first of them
  MaxLog,         \* longest log
  MaxEpoch,       \* last leader epoch
  MaxCrash        \* most crashes

Order == <<b1, b2, b3>>
Count == Cardinality(Broker)

ASSUME BrokersInOrder == Broker = {Order[i] : i \in 1..Count} /\ FirstLeader = b1

----------------------------------------------------------------------------------
(* A state and a label as nested tuples of small numbers: what the Python explorer compares with.  Brokers are their
   position in Order from 0, sets of brokers are bit masks, -1 is "none". *)

\* TLC evaluates these functions once.
IndexOf == [b \in BrokerOrNone |-> IF b = NoBroker THEN -1 ELSE (CHOOSE i \in 1..Count : Order[i] = b) - 1]
MaskOf ==
  LET bit(i, S) == IF i <= Count /\ Order[i] \in S THEN 2 ^ (i - 1) ELSE 0
  IN  [S \in SUBSET Broker |-> bit(1, S) + bit(2, S) + bit(3, S)]
RoleNumber == [none |-> 0, leader |-> 1, follower |-> 2]

Index(b) == IndexOf[b]
Mask(S) == MaskOf[S]
Number(boolean) == IF boolean THEN 1 ELSE 0

Slot(m) ==
  CASE m.type = "nothing"      -> <<>>
    [] m.type = "request"      -> <<1, m.epoch, m.offset, m.lastEpoch>>
    [] m.type = "data"         -> <<2, m.epoch, m.offset, m.hw, m.records>>
    [] m.type = "diverging"    -> <<3, m.epoch, m.offset, m.divEpoch, m.divEnd>>
    [] m.type = "out of range" -> <<4, m.epoch, m.offset, m.leaderStart, m.leaderEnd>>

BrokerView(b) ==
  <<log[b], hw[b], mark[b], Number(up[b]), RoleNumber[role[b]], epoch[b], Index(leader[b]), Mask(isr[b]),
    Mask(pending[b]), [i \in 1..Count |-> remoteLeo[b][Order[i]]], [i \in 1..Count |-> Slot(net[b][Order[i]])]>>

View ==
  <<[i \in 1..Count |-> BrokerView(Order[i])],
    <<Index(controller.leader), controller.epoch, Mask(controller.isr), Mask(controller.live)>>,
    committed, crashes>>

\* Replaced by the two below, in a .cfg, when the graph is asked for.
ReportInit == TRUE
ReportStep(label) == TRUE

PrintInit == PrintT(ToString(<<"init", View>>))
PrintStep(label) == PrintT(ToString(<<"step", label, "from", View, "to", View'>>))

----------------------------------------------------------------------------------
(* The actions, bounded and reported *)

MCLeaderAppend(l) == LeaderAppend(l) /\ Len(log'[l]) <= MaxLog /\ ReportStep(<<"LeaderAppend", Index(l)>>)
MCHandleFetch(l, f, x) == HandleFetch(l, f, x) /\ ReportStep(<<"HandleFetch", Index(l), Index(f), Number(x)>>)
MCShrinkIsr(l, S) == ShrinkIsr(l, S) /\ ReportStep(<<"ShrinkIsr", Index(l), Mask(S)>>)
MCSendFetch(f) == SendFetch(f) /\ ReportStep(<<"SendFetch", Index(f)>>)
MCHandleFetchResponse(f, l) == HandleFetchResponse(f, l) /\ ReportStep(<<"HandleFetchResponse", Index(f), Index(l)>>)
MCHandleDivergingResponse(f, l) ==
  HandleDivergingResponse(f, l) /\ ReportStep(<<"HandleDivergingResponse", Index(f), Index(l)>>)
MCHandleOutOfRange(f, l) == HandleOutOfRange(f, l) /\ ReportStep(<<"HandleOutOfRange", Index(f), Index(l)>>)
MCLoseResponse(f, l) == LoseResponse(f, l) /\ ReportStep(<<"LoseResponse", Index(f), Index(l)>>)
MCBecomeLeader(b) == BecomeLeader(b) /\ ReportStep(<<"BecomeLeader", Index(b)>>)
MCBecomeFollower(b) == BecomeFollower(b) /\ ReportStep(<<"BecomeFollower", Index(b)>>)
MCCrash(b, h) ==
  crashes < MaxCrash /\ Crash(b, h, Leo(b)) /\ ReportStep(<<"Crash", Index(b), h, Leo(b)>>)
MCRestart(b) == Restart(b) /\ ReportStep(<<"Restart", Index(b)>>)
MCFenceBroker(b, k) ==
  FenceBroker(b, k) /\ controller'.epoch <= MaxEpoch /\ ReportStep(<<"FenceBroker", Index(b), Index(k)>>)
MCUnfenceBroker(b, k) ==
  UnfenceBroker(b, k) /\ controller'.epoch <= MaxEpoch /\ ReportStep(<<"UnfenceBroker", Index(b), Index(k)>>)
MCElectPreferred(k) ==
  ElectPreferred(k) /\ controller'.epoch <= MaxEpoch /\ ReportStep(<<"ElectPreferred", Index(k)>>)
MCAlterPartition(b) == AlterPartition(b) /\ ReportStep(<<"AlterPartition", Index(b)>>)

MCInit == Init /\ ReportInit

MCNext ==
  \/ \E l \in Broker : MCLeaderAppend(l)
  \/ \E l, f \in Broker, expand \in BOOLEAN : MCHandleFetch(l, f, expand)
  \/ \E l \in Broker, removed \in SUBSET Broker : MCShrinkIsr(l, removed)
  \/ \E f \in Broker : MCSendFetch(f)
  \/ \E f, l \in Broker : MCHandleFetchResponse(f, l)
  \/ \E f, l \in Broker : MCHandleDivergingResponse(f, l)
  \/ \E f, l \in Broker : MCHandleOutOfRange(f, l)
  \/ \E f, l \in Broker : MCLoseResponse(f, l)
  \/ \E b \in Broker : MCBecomeLeader(b)
  \/ \E b \in Broker : MCBecomeFollower(b)
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b] : MCCrash(b, checkpoint)
  \/ \E b \in Broker : MCRestart(b)
  \/ \E b \in Broker, k \in BrokerOrNone : MCFenceBroker(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : MCUnfenceBroker(b, k)
  \/ \E k \in Broker : MCElectPreferred(k)
  \/ \E b \in Broker : MCAlterPartition(b)

MCSpec == MCInit /\ [][MCNext]_vars

----------------------------------------------------------------------------------
(* Variants of the decisions, put in by name *)

\* Profile hw-only, before KIP-101: no epochs in the protocol; a follower first cuts at its own high watermark.
AnyEpoch(requested, local) == FALSE
DecideByOffset(l, offset, lastEpoch) == FetchDecision(<<>>, LogStart, Leo(l), offset, Undefined)
MatchesOffset(f, m) == m.offset = Leo(f)
InSyncByHw(l, offset) == offset >= hw[l]
TruncateToHighWatermark(b) ==
  /\ log' = [log EXCEPT ![b] = Prefix(@, hw[b])]
  /\ mark' = [mark EXCEPT ![b] = Undefined]

\* Guards taken away.  MatchesOffset and DecideByOffset serve here too.
MatchesAnything(f, m) == TRUE
CommittedIsr(committedIsr, proposed) == committedIsr

\* A repair: a new leader epoch always starts without knowledge of the followers.
AlwaysForgets(b) == TRUE

----------------------------------------------------------------------------------
(* Reachability: each says that an interesting state never comes, and is expected to fail *)

CutPoint(f, l) == LET m == net[f][l] IN TruncationTarget(Cache(f), Leo(f), m.offset, m.divEpoch, m.divEnd)
Divergence(f, l) == net[f][l].type = "diverging" /\ Accepts(f, l)

NoRecordIsCut == \A f, l \in Broker : Divergence(f, l) => CutPoint(f, l).offset >= Leo(f)
OneRoundIsEnough == \A f, l \in Broker : Divergence(f, l) => CutPoint(f, l).completed

==================================================================================
