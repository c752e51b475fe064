----------------------------- MODULE AlterPartition -----------------------------
(***********************************************************************************
 How a leader changes the ISR: AlterPartition requests and responses, the partition epoch
 that orders them with the metadata records of the same changes, and broker epochs.
 `Replication` makes one step of all this; here nothing is hidden, and the rest is.

 What is modelled
   * One leader in one leader epoch.  A replica is a log end: the records below it are
     the leader's.
   * The leader proposes, one request at a time; a request may be handled and its response
     lost, and is then sent again.  The controller also takes fenced and restarted
     brokers out of the ISR by itself.
   * Each change is a metadata record; the leader reads images of them late, and may skip
     to a newer one.  It hears of its own change twice, by response and by metadata, in
     either order.
   * A broker may come back with an empty log and a new broker epoch.

 What is left out: elections (IsrCompleteness says what any of them would need),
 divergence, clocks.  A replica that was caught up within replica.lag.time.max.ms is one
 that is `recent`, until at any time it is not; models put that rule in by name
 (MCAlterPartition/CaughtUp.cfg), the others do without.

 Sources: apache/kafka Partition#makeLeader, #maybeIncrementLeaderHW, #prepareIsrExpand,
 #prepareIsrShrink, #handleAlterPartitionUpdate, ReplicationControlManager#alterPartition,
 #validateAlterPartitionData, KIP-497, KIP-841, KIP-903.
 ***********************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Leader,         \* the broker that leads
  Follower        \* the other replicas

ASSUME LeaderIsOne == IsFiniteSet(Follower) /\ Leader \notin Follower

VARIABLES
  end,          \* end[b]: the log end of each replica
  hw,           \* the leader's high watermark
  known,        \* known[f]: the log end of f and the broker epoch it fetched with, as the leader recorded them
  view,         \* what the leader knows to be committed: [isr, partitionEpoch]
  pending,      \* the ISR the leader has proposed and not heard of again, or {}
  channel,      \* between leader and controller: Nothing, a request, a response or a refusal
  controller,   \* [isr, partitionEpoch]
  images,       \* the metadata records that the leader has not read, oldest first
  incarnation,  \* incarnation[f]: the broker epoch of f
  committed,    \* bookkeeping: the highest offset ever below the high watermark
  restarts,     \* bookkeeping: how often a broker came back empty
  recent        \* the followers that were caught up within the lag limit, as the leader sees it

vars == <<end, hw, known, view, pending, channel, controller, images, incarnation, committed, restarts, recent>>

Replica == Follower \cup {Leader}
Partition == [isr : SUBSET Replica, partitionEpoch : Nat]
Nothing == [type |-> "nothing"]
Request(members) ==
  [type : {"request"}, isr : {members \cup {Leader}}, partitionEpoch : Nat, incarnation : [members -> Nat]]
Response == [type : {"response"}, isr : SUBSET Replica, partitionEpoch : Nat, asked : SUBSET Replica]
Refusal == [type : {"refusal"}, asked : SUBSET Replica]

TypeOK ==
  /\ end \in [Replica -> Nat]
  /\ hw \in Nat
  /\ known \in [Follower -> [end : Nat, incarnation : Nat]]
  /\ view \in Partition
  /\ pending \in SUBSET Replica
  /\ channel \in {Nothing} \cup Response \cup Refusal \/ \E members \in SUBSET Follower : channel \in Request(members)
  /\ controller \in Partition
  /\ images \in Seq(Partition)
  /\ incarnation \in [Follower -> Nat]
  /\ committed \in Nat
  /\ restarts \in Nat
  /\ recent \in SUBSET Follower

\* Whether the lag limit is modelled: nobody is recent where it is not.
Remembers(followers) == {}

Init ==
  /\ end = [b \in Replica |-> 0]
  /\ hw = 0
  /\ known = [f \in Follower |-> [end |-> 0, incarnation |-> 0]]
  /\ view = [isr |-> Replica, partitionEpoch |-> 0]
  /\ pending = {}
  /\ channel = Nothing
  /\ controller = view
  /\ images = <<>>
  /\ incarnation = [f \in Follower |-> 0]
  /\ committed = 0
  /\ restarts = 0
  /\ recent = Remembers(Follower)

----------------------------------------------------------------------------------
(* Decisions; a .cfg takes them away or mends them by name *)

\* Who holds the high watermark back: early, a member that is proposed.  KAFKA: PartitionState#maximalIsr.
MaximalIsr(isr, proposed) == isr \cup proposed

\* So does, in the ISR or not, who was caught up within the lag limit and is who it was (KAFKA-15021).
\* KAFKA: Partition#maybeIncrementLeaderHW, Replica#isCaughtUp, Partition#isReplicaIsrEligible.
CaughtUp(recorded) == {f \in recent : recorded[f].incarnation = incarnation[f]}

\* The controller commits a proposal made on the partition it has (INVALID_UPDATE_VERSION otherwise) ...
IsCurrent(request) == request.partitionEpoch = controller.partitionEpoch

\* ... whose members are the incarnations that fetched (INELIGIBLE_REPLICA otherwise; KIP-903).
AreThemselves(request) == \A f \in request.isr \ {Leader} : request.incarnation[f] = incarnation[f]

\* The leader takes a response that is not older than what it knows.  KAFKA: Partition#handleAlterPartitionUpdate.
TakesResponse(response) == response.partitionEpoch >= view.partitionEpoch

\* The leader reads metadata unless it is older than what it knows: Kafka, 4.3.1 still, reads the equal one too, which tells
\* it nothing and makes it forget what it has proposed since.  KAFKA: Partition#makeLeader.
ReadsImage(image) == image.partitionEpoch >= view.partitionEpoch

----------------------------------------------------------------------------------
(* Leader *)

MinOf(S) == CHOOSE x \in S : \A y \in S : x <= y
MaxOf(S) == CHOOSE x \in S : \A y \in S : x >= y

\* KAFKA: Partition#maybeIncrementLeaderHW.
RaiseHighWatermark(logEnd, recorded, isr, proposed) ==
  LET lowest == MinOf({logEnd} \cup {recorded[f].end : f \in (MaximalIsr(isr, proposed) \cup CaughtUp(recorded)) \ {Leader}})
  IN  /\ hw' = MaxOf({hw, lowest})
      /\ committed' = MaxOf({committed, lowest})

\* What is asked of the controller: the new ISR, with the broker epochs its members fetched with.
Proposal(isr, recorded) ==
  [type |-> "request", isr |-> isr, partitionEpoch |-> view.partitionEpoch,
   incarnation |-> [f \in isr \ {Leader} |-> recorded[f].incarnation]]

LeaderAppend ==
  /\ end' = [end EXCEPT ![Leader] = @ + 1]
  /\ RaiseHighWatermark(end'[Leader], known, view.isr, pending)
  /\ UNCHANGED <<known, view, pending, channel, controller, images, incarnation, restarts, recent>>

\* WHO the leader, for a fetch of f.  WHAT records where f stands; may propose f; tries to raise the high watermark if f has
\* moved; f gets one record more, or the response is late and counts as lost.  KAFKA: Partition#updateFollowerFetchState.
HandleFetch(f, expand, responseLost) ==
  /\ LET recorded == [known EXCEPT ![f] = [end |-> end[f], incarnation |-> incarnation[f]]]
         proposed == IF expand THEN view.isr \cup {f} ELSE pending
     IN  /\ expand => pending = {} /\ channel = Nothing /\ f \notin view.isr /\ end[f] >= hw
         /\ known' = recorded
         /\ pending' = proposed
         /\ recent' = IF end[f] = end[Leader] THEN Remembers(recent \cup {f}) ELSE recent
         /\ IF end[f] = known[f].end
            THEN UNCHANGED <<hw, committed>>
            ELSE RaiseHighWatermark(end[Leader], recorded, view.isr, proposed)
         /\ channel' = IF expand THEN Proposal(proposed, recorded) ELSE channel
  /\ end' = IF responseLost THEN end ELSE [end EXCEPT ![f] = MinOf({@ + 1, end[Leader]})]
  /\ UNCHANGED <<view, controller, images, incarnation, restarts>>

ShrinkIsr(removed) ==
  /\ pending = {}
  /\ channel = Nothing
  /\ removed # {}
  /\ removed \subseteq {f \in view.isr \ ({Leader} \cup recent) : known[f].end < end[Leader]}
  /\ pending' = view.isr \ removed
  /\ channel' = Proposal(pending', known)
  /\ UNCHANGED <<end, hw, known, view, controller, images, incarnation, committed, restarts, recent>>

\* WHO the clock.  WHAT lets the lag limit pass for a follower that is behind: from now on it may be dropped, and outside the
\* ISR it holds nothing back.  SIMPLIFIED: a follower is caught up when it fetches at the log end; in Kafka also when it
\* fetches at what was the log end at its last fetch (Replica#updateFetchStateOrThrow).
LagLimitPasses(f) ==
  /\ f \in recent
  /\ known[f].end < end[Leader]
  /\ recent' = recent \ {f}
  /\ UNCHANGED <<end, hw, known, view, pending, channel, controller, images, incarnation, committed, restarts>>

(*
  WHO         the leader
  WHAT        takes a success that is not older than what it knows, if it still waits for just this proposal; falls back on
              a refusal for an ineligible member; after INVALID_UPDATE_VERSION it waits for metadata, so that response is not
              modelled
  KAFKA       Partition#submitAlterPartition, #handleAlterPartitionUpdate, #handleAlterPartitionError
*)
HandleAlterPartitionResponse ==
  /\ channel.type \in {"response", "refusal"}
  /\ channel' = Nothing
  /\ LET m == channel
         mine == pending = m.asked
         refused == m.type = "refusal"
     IN  IF mine /\ ~refused /\ TakesResponse(m)
         THEN /\ view' = [isr |-> m.isr, partitionEpoch |-> m.partitionEpoch]
              /\ pending' = {}
              /\ RaiseHighWatermark(end[Leader], known, m.isr, {})
         ELSE /\ pending' = IF mine /\ refused THEN {} ELSE pending
              /\ UNCHANGED <<view, hw, committed>>
  /\ UNCHANGED <<end, known, controller, images, incarnation, restarts, recent>>

\* WHO the leader.  WHAT reads metadata, perhaps several records at once, of which it sees the last.
ReadMetadata(n) ==
  /\ n \in 1..Len(images)
  /\ images' = SubSeq(images, n + 1, Len(images))
  /\ IF ReadsImage(images[n])
     THEN /\ view' = images[n]
          /\ pending' = {}
          /\ RaiseHighWatermark(end[Leader], known, images[n].isr, {})
     ELSE UNCHANGED <<view, pending, hw, committed>>
  /\ UNCHANGED <<end, known, channel, controller, incarnation, restarts, recent>>

----------------------------------------------------------------------------------
(* Controller, and brokers that go and come *)

Commit(isr) ==
  /\ controller' = [isr |-> isr, partitionEpoch |-> controller.partitionEpoch + 1]
  /\ images' = Append(images, controller')

(*
  WHO         the controller
  WHAT        commits the proposal or refuses it.  If the response is lost the leader sends the same request again
  KAFKA       ReplicationControlManager#alterPartition, #validateAlterPartitionData
*)
HandleAlterPartition(responseLost) ==
  /\ channel.type = "request"
  /\ LET m == channel
         Reply(response) == channel' = IF responseLost THEN m ELSE response
     IN  CASE ~IsCurrent(m) ->
                /\ UNCHANGED <<controller, images>>
                /\ channel' = Nothing
           [] IsCurrent(m) /\ AreThemselves(m) ->
                /\ Commit(m.isr)
                /\ Reply([type |-> "response", isr |-> controller'.isr, partitionEpoch |-> controller'.partitionEpoch,
                          asked |-> m.isr])
           [] IsCurrent(m) /\ ~AreThemselves(m) ->
                /\ UNCHANGED <<controller, images>>
                /\ Reply([type |-> "refusal", asked |-> m.isr])
  /\ UNCHANGED <<end, hw, known, view, pending, incarnation, committed, restarts, recent>>

\* WHO the controller.  WHAT takes a broker that lost its session out of the ISR.
FenceBroker(f) ==
  /\ f \in controller.isr
  /\ Commit(controller.isr \ {f})
  /\ UNCHANGED <<end, hw, known, view, pending, channel, incarnation, committed, restarts, recent>>

\* WHO a follower.  WHAT comes back without its log; registering takes it out of the ISR and gives it a new broker epoch.
RestartEmpty(f) ==
  /\ end' = [end EXCEPT ![f] = 0]
  /\ incarnation' = [incarnation EXCEPT ![f] = @ + 1]
  /\ restarts' = restarts + 1
  /\ IF f \in controller.isr THEN Commit(controller.isr \ {f}) ELSE UNCHANGED <<controller, images>>
  /\ UNCHANGED <<hw, known, view, pending, channel, committed, recent>>

Next ==
  \/ LeaderAppend
  \/ \E f \in Follower, expand, responseLost \in BOOLEAN : HandleFetch(f, expand, responseLost)
  \/ \E removed \in SUBSET Follower : ShrinkIsr(removed)
  \/ \E responseLost \in BOOLEAN : HandleAlterPartition(responseLost)
  \/ HandleAlterPartitionResponse
  \/ \E n \in 1..Len(images) : ReadMetadata(n)
  \/ \E f \in Follower : FenceBroker(f)
  \/ \E f \in Follower : RestartEmpty(f)
  \/ \E f \in Follower : LagLimitPasses(f)

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------------
(* Safety *)

\* Whoever may be elected next holds everything that was committed.
IsrCompleteness == \A b \in controller.isr : end[b] >= committed

\* The controller's ISR never holds a member that the leader does not count (KIP-497).
IsrSuperset == controller.isr \subseteq MaximalIsr(view.isr, pending)

\* No THEOREM: neither holds of Kafka as it is (MCAlterPartition/EqualEpoch.cfg).  With `>` in ReadsImage both hold within the
\* bounds of MCAlterPartition/SkipsEqual.cfg.
==================================================================================
