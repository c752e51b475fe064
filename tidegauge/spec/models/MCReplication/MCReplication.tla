------------------------------ MODULE MCReplication ------------------------------
(***********************************************************************************
 `Replication` with bounds, for TLC; the variants of its decisions that older profiles
 and negative models put in by name; and the report of each transition that spec/tlc/graph.py
 reads.

 Bounds stand around the actions of `Replication`, on the state after the step.  Only
 what perturbs is bounded (appends, elections, crashes), never what heals.
 ***********************************************************************************)
EXTENDS CommittedInvariant, TLC

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
   position in Order from 0, sets of brokers are bit masks, -1 is "none".  A log start of 0 is not told. *)

\* TLC evaluates these functions once.
IndexOf == [b \in BrokerOrNone |-> IF b = NoBroker THEN -1 ELSE (CHOOSE i \in 1..Count : Order[i] = b) - 1]
MaskOf ==
  LET bit(i, S) == IF i <= Count /\ Order[i] \in S THEN 2 ^ (i - 1) ELSE 0
  IN  [S \in SUBSET Broker |-> bit(1, S) + bit(2, S) + bit(3, S)]
RoleNumber == [none |-> 0, leader |-> 1, follower |-> 2, truncating |-> 3]

Index(b) == IndexOf[b]
Mask(S) == MaskOf[S]
Number(boolean) == IF boolean THEN 1 ELSE 0

Slot(m) ==
  CASE m.type = "nothing"      -> <<>>
    [] m.type = "request"      -> <<1, m.epoch, m.offset, m.lastEpoch>>
    [] m.type = "data"         -> <<2, m.epoch, m.offset, m.hw, m.records>> \o (IF m.logStart = 0 THEN <<>> ELSE <<m.logStart>>)
    [] m.type = "diverging"    -> <<3, m.epoch, m.offset, m.divEpoch, m.divEnd>>
    [] m.type = "out of range" -> <<4, m.epoch, m.offset, m.leaderStart, m.leaderEnd>>
    [] m.type = "epoch request" -> <<5, m.epoch, m.lastEpoch>>
    [] m.type = "epoch end"    -> <<6, m.epoch, m.endEpoch, m.endOffset>>

BrokerView(b) ==
  <<log[b], hw[b], mark[b], Number(up[b]), RoleNumber[role[b]], epoch[b], Index(leader[b]), Mask(isr[b]),
    Mask(pending[b]), [i \in 1..Count |-> remoteLeo[b][Order[i]]], [i \in 1..Count |-> Slot(net[b][Order[i]])]>>

Parts ==
  <<[i \in 1..Count |-> BrokerView(Order[i])],
    <<Index(controller.leader), controller.epoch, Mask(controller.isr), Mask(controller.live)>>,
    committed, crashes>>

\* Replaced where a module has a variable more.
View == Parts

\* Replaced by one of those below, in a .cfg, when steps are asked for.
ReportStep(label) == TRUE

\* Replaced where a module has a variable that follows from what an action of `Replication` changes.
Completes == TRUE
PrintStep(label) == Completes /\ PrintT(ToString(<<"step", label, "to", View', "from", View>>))

\* For the whole graph: TLC takes up a state, then tries every step from it.  So the state is printed once, by an action that is
\* never enabled, and not with each of its steps.
PrintSource == PrintT(ToString(<<"from", View>>)) /\ FALSE
PrintTarget(label) == Completes /\ PrintT(ToString(<<"step", label, "to", View'>>))

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
MCTruncateToHighWatermark(f) == TruncateToHighWatermark(f) /\ ReportStep(<<"TruncateToHighWatermark", Index(f)>>)
MCSendEpochRequest(f) == SendEpochRequest(f) /\ ReportStep(<<"SendEpochRequest", Index(f)>>)
MCHandleEpochRequest(l, f) == HandleEpochRequest(l, f) /\ ReportStep(<<"HandleEpochRequest", Index(l), Index(f)>>)
MCHandleEpochResponse(f, l) == HandleEpochResponse(f, l) /\ ReportStep(<<"HandleEpochResponse", Index(f), Index(l)>>)
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

MCReplicaStep ==
  \/ \E l \in Broker : MCLeaderAppend(l)
  \/ \E l, f \in Broker, expand \in BOOLEAN : MCHandleFetch(l, f, expand)
  \/ \E l \in Broker, removed \in SUBSET Broker : MCShrinkIsr(l, removed)
  \/ \E f \in Broker : MCSendFetch(f)
  \/ \E f, l \in Broker : MCHandleFetchResponse(f, l)
  \/ \E f, l \in Broker : MCHandleDivergingResponse(f, l)
  \/ \E f, l \in Broker : MCHandleOutOfRange(f, l)
  \/ \E f, l \in Broker : MCLoseResponse(f, l)
  \/ \E f \in Broker : MCTruncateToHighWatermark(f)
  \/ \E f \in Broker : MCSendEpochRequest(f)
  \/ \E l, f \in Broker : MCHandleEpochRequest(l, f)
  \/ \E f, l \in Broker : MCHandleEpochResponse(f, l)
  \/ \E b \in Broker : MCBecomeLeader(b)
  \/ \E b \in Broker : MCBecomeFollower(b)

MCSessionStep ==
  \/ \E b \in Broker : MCRestart(b)
  \/ \E b \in Broker, k \in BrokerOrNone : MCFenceBroker(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : MCUnfenceBroker(b, k)
  \/ \E k \in Broker : MCElectPreferred(k)
  \/ \E b \in Broker : MCAlterPartition(b)

MCNext ==
  \/ MCReplicaStep
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b] : MCCrash(b, checkpoint)
  \/ MCSessionStep

MCSpec == Init /\ [][MCNext]_vars

----------------------------------------------------------------------------------
(* Tighter bounds, for three brokers from Init over three leader epochs *)

\* A CONSTRAINT: leaders propose nothing, so the ISR shrinks with lost sessions, and nobody comes back.
NothingIsProposed == \A b \in Broker : pending[b] = {}

\* A SYMMETRY: nothing tells those apart who do not lead first.
FollowersAlike == Permutations(Broker \ {FirstLeader})

----------------------------------------------------------------------------------
(* Refinement: what AbstractReplication sees of a state *)

Abstract ==
  INSTANCE AbstractReplication
    WITH term <- [b \in Broker |-> IF role[b] = "leader" THEN epoch[b] ELSE Undefined],
         elected <- [leader |-> controller.leader, epoch |-> controller.epoch, isr |-> controller.isr]

Refines == Abstract!Spec

----------------------------------------------------------------------------------
(* Older profiles: decisions put in by name *)

\* hw-only, before KIP-101: no epochs in the protocol; a follower first truncates at its own high watermark, in
\* ReplicaManager#makeFollowers.
NobodyIsFenced == FALSE
DecideByOffset(l, f, offset, lastEpoch) == FetchDecision(<<>>, LogStart, Leo(l), offset, Undefined)
MatchesOffset(f, m) == m.offset = Leo(f)
InSyncByHw(l, offset) == offset >= hw[l]
MakeFollowerTruncates(b) ==
  /\ log' = [log EXCEPT ![b] = Prefix(@, hw[b])]
  /\ mark' = [mark EXCEPT ![b] = Undefined]

\* kip101, kip279, kip320: a follower with an epoch asks for its end first.  KIP-101 answers with
\* an offset alone; KIP-279 with its epoch too, in rounds; KIP-320 refuses requests and drops responses of another epoch.
AsksForEpochEnd(b) == Cache(b) # <<>>
AnyEpochEnd(f, m) == TRUE
EndFoundWithoutEpoch(l, f, asked) == [EndOffsetFor(Cache(l), Leo(l), asked) EXCEPT !.epoch = Undefined]

\* The step of the fetcher thread, as releases have it from 0.11 on: every new entry is Truncating before truncation on fetch, and
\* that of an empty cache with it.  A later broker that is kept at the protocol of 0.10.2 has hw-only so, too.
EveryFollowerTruncates(b) == TRUE
HasNoEpoch(b) == Cache(b) = <<>>
NobodyAsks(lastEpoch) == TRUE

\* Put in for LeftInFlight: what a follower has asked others stays with the threads that asked.
KeepsInFlight(f) == net[f]

----------------------------------------------------------------------------------
(* Guards taken away, by name.  Some of the above serve here too *)

MatchesAnything(f, m) == TRUE
MatchesEpoch(f, m) == m.epoch = epoch[f]
CommittedIsr(committedIsr, proposed) == committedIsr
ProposedIsr(committedIsr, proposed) == IF proposed = {} THEN committedIsr ELSE proposed
AnybodyInSync(l, offset) == TRUE
InSyncByEpochStart(l, offset) == offset >= EpochStart(l)
RefusesNewerEpochs(l, f, requested) == role[l] # "leader" \/ requested > epoch[l]  \* KAFKA-7395, KAFKA-9338
UnclampedHighWatermark(leaderHw, logStart, logEnd) == leaderHw
HighWatermarkStays(h, target) == h
UnknownDoesNotCount(h, logEnd, leos) == MaxOf({h, MinOf({logEnd} \cup (leos \ {Undefined}))})
KeepsWhatItKnew(b) == remoteLeo[b]
NeverForgets(b) == FALSE
NoMark(b) == Undefined
AnyIsr(b) == TRUE
EndOffsetOneTooFar(cache, logEnd, requested) ==
  LET n == Len(cache)
      known == Cardinality({i \in 1..n : cache[i].epoch <= requested})
  IN  IF      requested = Undefined          THEN NoEpochEnd
      ELSE IF requested = LatestEpoch(cache) THEN EpochEnd(requested, logEnd)
      ELSE IF known = n                      THEN NoEpochEnd
      ELSE IF known = 0                      THEN EpochEnd(requested, cache[1].start + 1)
      ELSE                                        EpochEnd(cache[known].epoch, cache[known + 1].start + 1)
ReadsAnything(l, f, offset, lastEpoch) == [kind |-> "read", epoch |-> Undefined, end |-> Undefined]
ElectsWhoIsLive(k, newIsr, candidates) == IF k = NoBroker THEN candidates = {} ELSE k \in candidates
ElectedInTheSameEpoch(k, newIsr, live) == [controller EXCEPT !.leader = k, !.isr = newIsr, !.live = live]
OneRound(f, m) == [TruncationTarget(Cache(f), Leo(f), hw[f], m.endEpoch, m.endOffset) EXCEPT !.completed = TRUE]

\* A controller that forgets its last election, and brokers that follow it: what the metadata log is there to prevent.
ElectedAnEpochEarlier(k, newIsr, live) ==
  [leader |-> k, epoch |-> IF controller.epoch = 0 THEN 1 ELSE controller.epoch - 1, isr |-> newIsr, live |-> live]
AnyOtherEpochIsNews(b) == up[b] /\ controller.epoch # epoch[b]

\* Repairs: a new leader epoch always starts without knowledge of the followers; or when somebody else may have led before.
AlwaysForgets(b) == ForgetsLogEnds(epoch[b], controller.epoch, role[b] = "leader", FALSE)
ForgetsAfterGap(b) == ForgetsLogEnds(epoch[b], controller.epoch, role[b] = "leader", controller.epoch = epoch[b] + 1)

----------------------------------------------------------------------------------
(* Unclean restart: a log that loses its end, or all of it.  What it takes to stand that is in ELR.tla *)

\* Put in for SurvivesCrash.
AnyTailMayBeLost(b, kept) == kept \in 0..Leo(b)

MCLoseTail(b, h, kept) ==
  crashes < MaxCrash /\ Crash(b, h, kept) /\ ReportStep(<<"Crash", Index(b), h, kept>>)
MCLoseTailSpec ==
  Init /\ [][MCNext \/ \E b \in Broker : \E h \in 0..hw[b], kept \in 0..Leo(b) : MCLoseTail(b, h, kept)]_vars

----------------------------------------------------------------------------------
(* Unclean election, for what must hold even then *)

\* KAFKA: PartitionChangeBuilder, UNCLEAN: nobody of the ISR is live; the elected one is the new ISR.
ElectUnclean(k) ==
  /\ controller.leader = NoBroker
  /\ k \in controller.live
  /\ controller' = Elected(k, {k}, controller.live)
  /\ UNCHANGED <<disk, memory, net, committed, crashes>>

MCElectUnclean(k) == ElectUnclean(k) /\ controller'.epoch <= MaxEpoch /\ ReportStep(<<"ElectUnclean", Index(k)>>)
MCUncleanSpec == Init /\ [][MCNext \/ \E k \in Broker : MCElectUnclean(k)]_vars

----------------------------------------------------------------------------------
(* HandleDivergingResponse as two steps: the fetcher thread accepts a response under its lock, and truncates under the lock again *)

\* What it asks then: that the partition is there.  KAFKA: AbstractFetcherThread#truncateOnFetchResponse.
StillAccepts(f, l) == Follows(f, l)
AcceptsAgain(f, l) == Accepts(f, l)

AcceptDiverging(f, l) ==
  /\ net[f][l].type = "diverging"
  /\ Accepts(f, l)
  /\ Reply(f, l, [net[f][l] EXCEPT !.type = "accepted"])
  /\ UNCHANGED <<disk, memory, controller, committed, crashes>>

TruncateAccepted(f, l) ==
  /\ net[f][l].type = "accepted"
  /\ LET m == net[f][l]
     IN  IF StillAccepts(f, l)
         THEN TruncateAt(f, TruncationTarget(Cache(f), Leo(f), Leo(f), m.divEpoch, m.divEnd).offset)
         ELSE UNCHANGED disk
  /\ FetchAgain(f, l)
  /\ UNCHANGED <<memory, controller, committed, crashes>>

MCTwoLocksNext == MCNext \/ \E f, l \in Broker : AcceptDiverging(f, l) \/ TruncateAccepted(f, l)
MCTwoLocksSpec == Init /\ [][MCTwoLocksNext]_vars

----------------------------------------------------------------------------------
(* Fairness: what heals keeps happening; answers are not lost for ever *)

\* Few conjuncts, because TLC makes 2^n cases of n of them.  A slot holds one message, so one of a group is enabled at a time.
AsksAndIsAnswered(f) ==
  \/ MCSendFetch(f)
  \/ MCTruncateToHighWatermark(f)
  \/ MCSendEpochRequest(f)
  \/ \E l \in Broker : MCHandleEpochRequest(l, f) \/ \E expand \in BOOLEAN : MCHandleFetch(l, f, expand)
TakesAResponse(f) ==
  \E l \in Broker :
    MCHandleFetchResponse(f, l) \/ MCHandleDivergingResponse(f, l) \/ MCHandleOutOfRange(f, l) \/ MCHandleEpochResponse(f, l)

Healing ==
  \A b \in Broker :
    /\ WF_vars(AsksAndIsAnswered(b))
    /\ SF_vars(TakesAResponse(b))
    /\ WF_vars(MCBecomeLeader(b) \/ MCBecomeFollower(b))

MCFairSpec == MCSpec /\ Healing

\* What was committed reaches every live replica, for good.
CommittedReachesAll ==
  \A n \in 1..MaxLog :
    Len(committed) >= n
      ~> \A b \in controller.live : Leo(b) >= n /\ IsPrefix(Prefix(committed, MinOf({n, Len(committed)})), log[b])

\* In the end the logs of all live replicas are the same: no follower is stuck on records of its own.
LogsConverge == <>[](\A a, b \in controller.live : log[a] = log[b])

\* A follower does not stay in Truncating.  (That proposals end is for AlterPartition: it needs the partition epoch.)
TruncationEnds == \A b \in Broker : role[b] = "truncating" ~> role[b] # "truncating"

----------------------------------------------------------------------------------
(* Deep states to start from, for cases that are far from Init.  How clean elections lead there without a crash is told above
   each; MCSeeds.tla has each step of it, and TLC takes them.  Beside each model that fails from there stands one that holds,
   so the state itself breaks nothing *)

Three(x, y, z) == [b \in Broker |-> IF b = b1 THEN x ELSE IF b = b2 THEN y ELSE z]

\* Everybody runs, nothing is proposed, and in flight is this alone: inFlight(f, l) between f and l.
Quiet(inFlight(_, _)) ==
  /\ up = [b \in Broker |-> TRUE]
  /\ pending = [b \in Broker |-> {}]
  /\ net = [f \in Broker |-> [l \in Broker |-> inFlight(f, l)]]
  /\ crashes = 0

NothingIsInFlight(f, l) == Nothing

\* Epoch 0, leader b1: b2 has the record and said so, b3 has not, so it is not committed.  Epoch 1, leader b3: only b2 has
\* read of it.  b3 loses its session; epoch 2: b1 is to lead again.
MissedEpochInit ==
  /\ Quiet(NothingIsInFlight)
  /\ log = Three(<<0>>, <<0>>, <<>>)
  /\ hw = Three(0, 0, 0)
  /\ mark = Three(Undefined, Undefined, 1)
  /\ role = Three("leader", "follower", "leader")
  /\ epoch = Three(0, 1, 1)
  /\ leader = Three(b1, b3, b3)
  /\ isr = Three(Broker, {}, Broker)
  /\ remoteLeo = Three(Three(Undefined, 1, 0), NobodyKnown, NobodyKnown)
  /\ controller = [leader |-> b1, epoch |-> 2, isr |-> {b1, b2}, live |-> Broker]
  /\ committed = <<>>

\* Epoch 0, leader b1, ISR b1 and b2: its second record is on b1 only.  Epoch 1, leader b2: b3 joins at the first record.
\* Epoch 2, leader b3: b2 follows, its entry for epoch 1 has no record.  Epoch 3: b1 is to lead again; it has read nothing
\* since epoch 0.
StaleLeaderInit ==
  /\ Quiet(NothingIsInFlight)
  /\ log = Three(<<0, 0>>, <<0>>, <<0>>)
  /\ hw = Three(1, 1, 1)
  /\ mark = Three(Undefined, 1, 2)
  /\ role = Three("leader", "follower", "leader")
  /\ epoch = Three(0, 2, 2)
  /\ leader = Three(b1, b3, b3)
  /\ isr = Three({b1, b2}, {}, Broker)
  /\ remoteLeo = Three(Three(Undefined, 1, Undefined), NobodyKnown, NobodyKnown)
  /\ controller = [leader |-> b1, epoch |-> 3, isr |-> Broker, live |-> Broker]
  /\ committed = <<0>>

\* Epoch 0, leader b1, ISR b1 and b2: both records are committed, b2 has not heard so; b3 is behind.  Epoch 1: b2 leads.
LaggingFetches(f, l) ==
  IF f # b1 /\ l = b1 THEN [type |-> "request", epoch |-> 0, offset |-> IF f = b2 THEN 2 ELSE 1, lastEpoch |-> 0]
  ELSE Nothing

LaggingHwInit ==
  /\ Quiet(LaggingFetches)
  /\ log = Three(<<0, 0>>, <<0, 0>>, <<0>>)
  /\ hw = Three(2, 1, 0)
  /\ mark = Three(Undefined, Undefined, Undefined)
  /\ role = Three("leader", "follower", "follower")
  /\ epoch = Three(0, 0, 0)
  /\ leader = Three(b1, b1, b1)
  /\ isr = Three({b1, b2}, {}, {})
  /\ remoteLeo = Three(Three(Undefined, 2, 1), NobodyKnown, NobodyKnown)
  /\ controller = [leader |-> b2, epoch |-> 1, isr |-> {b1, b2}, live |-> Broker]
  /\ committed = <<0, 0>>

\* Leadership moved at every epoch before the other had fetched: b1 wrote in epochs 1 and 3, b2 in 2, and leads 4.
InterleavedInit ==
  /\ Quiet(NothingIsInFlight)
  /\ log = Three(<<0, 1, 3>>, <<0, 2>>, <<>>)
  /\ hw = Three(1, 1, 0)
  /\ mark = Three(Undefined, 4, Undefined)
  /\ role = Three("leader", "leader", "none")
  /\ epoch = Three(3, 4, Undefined)
  /\ leader = Three(b1, b2, NoBroker)
  /\ isr = Three(Broker, Broker, {})
  /\ remoteLeo = Three(NobodyKnown, NobodyKnown, NobodyKnown)
  /\ controller = [leader |-> b2, epoch |-> 4, isr |-> Broker, live |-> Broker]
  /\ committed = <<0>>

\* Epoch 1, leader b2: "diverging, truncated at 0" for the record of b1 is still on its way.  Epoch 2: b1 leads, b2 has copied the
\* record, it is committed, and the response that does not say so yet is on its way.
LateResponses(f, l) ==
  CASE f = b1 /\ l = b2 -> [type |-> "diverging", epoch |-> 1, offset |-> 1, divEpoch |-> 0, divEnd |-> 0]
    [] f = b2 /\ l = b1 -> [type |-> "data", epoch |-> 2, offset |-> 1, hw |-> 0, logStart |-> LogStart, records |-> <<>>]
    [] OTHER            -> Nothing

LateDivergingInit ==
  /\ Quiet(LateResponses)
  /\ log = Three(<<0>>, <<0>>, <<>>)
  /\ hw = Three(1, 0, 0)
  /\ mark = Three(2, Undefined, Undefined)
  /\ role = Three("leader", "follower", "none")
  /\ epoch = Three(2, 2, Undefined)
  /\ leader = Three(b1, b1, NoBroker)
  /\ isr = Three(Broker, {}, {})
  /\ remoteLeo = Three(Three(Undefined, 1, Undefined), NobodyKnown, NobodyKnown)
  /\ controller = [leader |-> b1, epoch |-> 2, isr |-> Broker, live |-> Broker]
  /\ committed = <<0>>

\* The same with b2's request of epoch 0, sent from behind the record, still on its way to b1: the thread that sent it lives on.
\* b1 has recorded less.
OldRequest(f, l) ==
  IF f = b2 /\ l = b1 THEN [type |-> "request", epoch |-> 0, offset |-> 1, lastEpoch |-> 0] ELSE Nothing

OldRequestInit ==
  /\ Quiet(OldRequest)
  /\ log = Three(<<0>>, <<0>>, <<>>)
  /\ hw = Three(0, 0, 0)
  /\ mark = Three(Undefined, Undefined, 1)
  /\ role = Three("leader", "follower", "leader")
  /\ epoch = Three(0, 1, 1)
  /\ leader = Three(b1, b3, b3)
  /\ isr = Three(Broker, {}, Broker)
  /\ remoteLeo = Three(Three(Undefined, 0, 0), NobodyKnown, NobodyKnown)
  /\ controller = [leader |-> b1, epoch |-> 2, isr |-> {b1, b2}, live |-> Broker]
  /\ committed = <<>>

----------------------------------------------------------------------------------
(* Reachability: each says that an interesting state never comes, and is expected to fail *)

TruncationPoint(f, l) == LET m == net[f][l] IN TruncationTarget(Cache(f), Leo(f), m.offset, m.divEpoch, m.divEnd)
Divergence(f, l) == net[f][l].type = "diverging" /\ Accepts(f, l)

NoRecordIsTruncated == \A f, l \in Broker : Divergence(f, l) => TruncationPoint(f, l).offset >= Leo(f)
OneRoundIsEnough == \A f, l \in Broker : Divergence(f, l) => TruncationPoint(f, l).completed
NothingToTruncate == \A f, l \in Broker : Divergence(f, l) => TruncationPoint(f, l).offset < Leo(f)

\* Rows of TruncationTarget for responses to OffsetsForLeaderEpoch.
EpochEndTruncation(f, l) == TruncateAtEpochEnd(f, net[f][l])
EpochEndAccepted(f, l) == net[f][l].type = "epoch end" /\ Truncates(f, l) /\ EpochEndMatches(f, net[f][l])
RowOneNeverTaken == \A f, l \in Broker : EpochEndAccepted(f, l) => EpochEndTruncation(f, l).row # 1
RowFourNeverTaken == \A f, l \in Broker : EpochEndAccepted(f, l) => EpochEndTruncation(f, l).row # 4
RowFiveNeverTaken == \A f, l \in Broker : EpochEndAccepted(f, l) => EpochEndTruncation(f, l).row # 5

NoOutOfRangeTruncation ==
  \A f, l \in Broker : net[f][l].type = "out of range" /\ Accepts(f, l) => net[f][l].leaderEnd >= Leo(f)

\* The high watermark of a follower goes down with a response of a leader that lags behind what it knew.
HwNeverFalls ==
  \A f, l \in Broker :
    net[f][l].type = "data" /\ Accepts(f, l)
      => FollowerHighWatermark(net[f][l].hw, LogStart, Leo(f) + Len(net[f][l].records)) >= hw[f]

NoStale(kind) == \A f, l \in Broker : net[f][l].type = kind /\ Follows(f, l) => net[f][l].epoch = epoch[f]
NoStaleData == NoStale("data")

\* The same reaches a follower whose fetcher thread has not truncated yet: it would fit, if the entry were ready for fetching.
NoStaleDataWhileTruncating ==
  \A f, l \in Broker :
    net[f][l].type = "data" /\ Truncates(f, l) /\ Matches(f, net[f][l]) => net[f][l].records = <<>>
NoStaleDiverging == NoStale("diverging")
NoStaleRequest ==
  \A f, l \in Broker : net[f][l].type = "request" /\ role[l] = "leader" => net[f][l].epoch = epoch[l]

\* A leader that the controller has replaced, and a follower that still fetches from it: its high watermark may yet rise.
NoDeposedLeaderServes ==
  \A f, l \in Broker :
    ~(role[l] = "leader" /\ epoch[l] < controller.epoch /\ net[f][l].type = "request" /\ net[f][l].epoch = epoch[l]
      /\ net[f][l].offset > remoteLeo[l][f] /\ f \in isr[l])

NoExpansionIsOvertaken ==
  \A b \in Broker : epoch[b] < controller.epoch => pending[b] \subseteq isr[b]
NoProposalIsRefused ==
  \A b \in Broker : pending[b] # {} /\ controller.leader = b /\ controller.epoch = epoch[b] /\ controller.isr = isr[b]
    => pending[b] \subseteq controller.live
NobodyMissesAnEpoch ==
  \A b \in Broker : role[b] = "leader" /\ controller.leader = b => controller.epoch <= epoch[b] + 1
NoFollowerIsAhead == \A f, l \in Broker : Follows(f, l) /\ IsCurrentLeader(l) => Leo(f) <= Leo(l)
AlwaysALeader == controller.leader # NoBroker

----------------------------------------------------------------------------------
(* What never comes, and holds: why a guard is idle with clean elections and a log start of 0 *)

\* A truncation never reaches below the high watermark of the follower, so that lowering it (HighWatermarkAfterTruncation) is idle.
NoTruncationBelowHighWatermark == \A f, l \in Broker : Divergence(f, l) => TruncationPoint(f, l).offset >= hw[f]

\* A leader has an entry for its own epoch, so divergence is found before an offset is out of range.
NeverOutOfRange == \A f, l \in Broker : net[f][l].type # "out of range"

\* With truncation on fetch, the response names an epoch and an end, and the follower has an entry at or below it.
OnlyRowsFourAndFive == \A f, l \in Broker : Divergence(f, l) => TruncationPoint(f, l).row \in {4, 5}

\* A broker that does not lead knows no log ends, so a new leader has nothing to forget (NeverForgets).  That is so in every
\* state, not only within bounds: HandleFetch, which records them, is a leader's, and the two steps that end a role,
\* BecomeFollower and Crash, clear them.
OnlyLeadersKnow == \A b \in Broker : role[b] # "leader" => remoteLeo[b] = NobodyKnown

==================================================================================
