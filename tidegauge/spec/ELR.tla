----------------------------------- MODULE ELR ------------------------------------
(***********************************************************************************
 Eligible leader replicas (KIP-966), profile `elr`: `Replication` with brokers that may
 lose the end of their log, or all of it, and a controller that knows whom it may trust
 with it.

 What is modelled
   * min.insync.replicas: the high watermark stands still while the ISR is smaller.
   * The ISR may become empty.  Who leaves it while it is smaller than
     min.insync.replicas stays eligible (ELR): nothing was committed without it.
   * A broker that stops uncleanly may lose any part of its log that it had not flushed;
     Kafka flushes nothing before it acknowledges, so that is any part.  The controller
     learns of it when the broker registers again, with another broker epoch and without
     the one its last clean stop left: it is then neither in sync nor eligible.
   * When nobody is left in either, the last known leader is elected, and may have lost
     data; or anybody, where unclean election is enabled.

 What is left out: a broker that cannot tell how it stopped counts as unclean, so it is
 not told apart; configuration changes (which clear the ELR); Balanced and Aggressive
 recovery, which Kafka does not have yet.

 The brokers' actions are those of `Replication`; the decisions this profile puts in for
 it are under "Decisions" and go by name into a .cfg.  The controller is here.

 Sources: KIP-966, KIP-903, KAFKA-15583, KAFKA-18635, KAFKA-18106, KAFKA-19522;
 apache/kafka PartitionChangeBuilder, ReplicationControlManager#handleUncleanBrokerShutdown,
 ClusterControlManager#registerBroker, as of 4.3.1.
 ***********************************************************************************)
EXTENDS Replication

CONSTANT MinIsr         \* min.insync.replicas

VARIABLES
  elr,          \* the eligible leader replicas, in the controller
  lastLeader,   \* the last known leader, in the controller: while there is none, who led last
  clean,        \* the brokers that are down after a clean stop
  reborn        \* reborn[l]: who has registered again since l proposed it: its broker epoch is not the one l sent

elrVars == <<elr, lastLeader, clean, reborn>>
allVars == <<vars, elrVars>>

ElrTypeOK ==
  /\ TypeOK
  /\ elr \in SUBSET Broker
  /\ lastLeader \in BrokerOrNone
  /\ clean \in SUBSET Broker
  /\ reborn \in [Broker -> SUBSET Broker]

ElrInit ==
  /\ Init
  /\ elr = {}
  /\ lastLeader = NoBroker
  /\ clean = {}
  /\ reborn = [l \in Broker |-> {}]

----------------------------------------------------------------------------------
(* Decisions: put in for those of `Replication`, or taken away, by name in a .cfg *)

\* KAFKA: Partition#effectiveMinIsr.
EffectiveMinIsr == MinOf({MinIsr, Cardinality(Broker)})

\* For HoldsHighWatermark.  The committed ISR counts, not a member that is proposed (KAFKA-15583).
UnderMinIsr(committedIsr, proposed) == Cardinality(committedIsr) < EffectiveMinIsr

\* For AcceptsMembers.  KAFKA: ReplicationControlManager#validateAlterPartitionData, INELIGIBLE_REPLICA (KIP-903).
AcceptsIncarnations(b) == pending[b] \subseteq controller.live /\ pending[b] \cap reborn[b] = {}

\* For SurvivesCrash.
AnyTailMayGo(b, kept) == kept \in LogStartOf(b)..Leo(b)

\* Who leaves the ISR and the ELR because of how it stopped.  KAFKA: PartitionChangeBuilder#setUncleanShutdownReplicas.
LostItsLog(b) == IF b \in clean THEN {} ELSE {b}

\* The eligible replicas beside a new ISR.  KAFKA: PartitionChangeBuilder#maybePopulateTargetElr.
ElrBeside(newIsr, lost) ==
  IF Cardinality(newIsr) >= EffectiveMinIsr THEN {} ELSE (elr \cup controller.isr) \ (newIsr \cup lost)

\* A broker that registers again is out of the ISR before it may do anything else.
LeavesOnRegistration(b) == controller.isr \ {b}

\* Who may be elected when a broker is unfenced: whoever is live then.  KAFKA: ReplicationControlManager#handleBrokerUnfenced.
ElectableOnUnfence(live) == live

\* What is left of the last known leader once somebody leads.  KAFKA: PartitionChangeBuilder#maybeUpdateLastKnownLeader.
LastLeaderOnceLed == NoBroker

\* Whether the last known leader may lead.  KAFKA: PartitionChangeBuilder#canElectLastKnownLeader (KAFKA-19522, 4.1.0).
LastKnownMayLead(k) == k \in controller.live

----------------------------------------------------------------------------------
(* Brokers, as before *)

\* What a step leaves of what the controller knows of proposals: who starts registers with another broker epoch, and a new
\* proposal carries new broker epochs.
Proposals ==
  LET started == {b \in Broker : up'[b] /\ ~up[b]}
  IN  reborn' = [l \in Broker |-> IF pending'[l] = pending[l] THEN reborn[l] \cup (pending[l] \cap started) ELSE {}]

(*
  WHO         a running broker
  WHAT        stops cleanly: everything is flushed, the high watermark checkpointed, and a file holds its broker epoch
  KAFKA       BrokerServer#shutdown, LogManager#shutdown (.kafka_cleanshutdown)
  SIMPLIFIED  no controlled shutdown: the controller finds out as with any lost session
*)
Stop(b) ==
  /\ Crash(b, hw[b], Leo(b))
  /\ clean' = clean \cup {b}
  /\ Proposals
  /\ UNCHANGED <<elr, lastLeader>>

\* WHO a running broker.  WHAT dies, and `kept` records are what will be found on its disk: 0 when the disk is lost.
CrashAndLose(b, checkpoint, kept) ==
  /\ Crash(b, checkpoint, kept)
  /\ Proposals
  /\ UNCHANGED <<elr, lastLeader, clean>>

----------------------------------------------------------------------------------
(* Controller *)

\* A change of the partition to this ISR and ELR, with these brokers live: the leader stays if it is still in the ISR; else
\* k is elected, from the ISR, or from the ELR when the ISR is empty, or is nobody when neither has a live member.
\* KAFKA: PartitionChangeBuilder#electLeader, #build, #setAssignmentChanges.
Change(newIsr, newElr, live, candidates, k) ==
  LET stays == controller.leader # NoBroker /\ controller.leader \in newIsr
      from == IF newIsr # {} THEN newIsr \cap candidates ELSE newElr \cap candidates
  IN  IF stays
      THEN /\ k = NoBroker
           /\ controller' = [controller EXCEPT !.isr = newIsr, !.live = live]
           /\ elr' = newElr
           /\ UNCHANGED lastLeader
      ELSE /\ IF from = {} THEN k = NoBroker ELSE k \in from
           /\ LET isrAfter == IF k # NoBroker /\ newIsr = {} THEN {k} ELSE newIsr
              IN  /\ controller' = IF k = NoBroker /\ controller.leader = NoBroker
                                   THEN [controller EXCEPT !.isr = newIsr, !.live = live]
                                   ELSE Elected(k, isrAfter, live)
                  /\ elr' = newElr \ isrAfter
           /\ lastLeader' = IF k # NoBroker THEN LastLeaderOnceLed
                            ELSE IF lastLeader = NoBroker THEN controller.leader ELSE lastLeader

(*
  WHO         the controller
  WHAT        loses the session of b and takes it out of the ISR, which may become empty.  A broker whose process runs
              comes back in the same step
  KAFKA       ReplicationControlManager#handleBrokerFenced, #generateLeaderAndIsrUpdates
*)
FenceElr(b, k) ==
  /\ b \in controller.live
  /\ b \in controller.isr \/ ~up[b]
  /\ LET live == IF up[b] THEN controller.live ELSE controller.live \ {b}
         newIsr == controller.isr \ {b}
         newElr == ElrBeside(newIsr, {})
         others == live \ {b}
         nobodyElse == IF newIsr # {} THEN newIsr \cap others = {} ELSE newElr \cap others = {}
     IN  Change(newIsr, newElr, live, IF nobodyElse THEN live ELSE others, k)
  /\ UNCHANGED <<disk, memory, net, committed, crashes, clean, reborn>>

(*
  WHO         a broker that was down, and the controller
  WHAT        starts and registers, with a new broker epoch: it leaves the ISR, and if it did not stop cleanly the ELR,
              before the registration counts; it stays fenced until it is unfenced.  Its old session need not have ended
  KAFKA       ClusterControlManager#registerBroker, ReplicationControlManager#handleBrokerUncleanShutdown,
              #handleBrokerFenced (KAFKA-18106)
*)
Register(b, k) ==
  /\ ~up[b]
  /\ up' = [up EXCEPT ![b] = TRUE]
  /\ clean' = clean \ {b}
  /\ LET live == controller.live \ {b}
         newIsr == LeavesOnRegistration(b)
     IN  Change(newIsr, ElrBeside(newIsr, LostItsLog(b)), live, live, k)
  /\ UNCHANGED <<disk, role, epoch, leader, isr, pending, remoteLeo, net, committed, crashes>>
  /\ Proposals

\* WHO the controller.  WHAT unfences a broker that has registered; without a leader, it elects k.
\* KAFKA: ReplicationControlManager#handleBrokerUnfenced.
UnfenceElr(b, k) ==
  /\ b \notin controller.live
  /\ up[b]
  /\ LET live == controller.live \cup {b}
     IN  Change(controller.isr, elr, live, ElectableOnUnfence(live), k)
  /\ UNCHANGED <<disk, memory, net, committed, crashes, clean, reborn>>

\* WHO the controller.  WHAT takes a proposal as before, and computes the ELR anew.
AlterPartitionElr(b) ==
  /\ AlterPartition(b)
  /\ elr' = ElrBeside(controller'.isr, {})
  /\ Proposals
  /\ UNCHANGED <<lastLeader, clean>>

(*
  WHO         the controller
  WHAT        with nobody in the ISR nor eligible, elects who led last
  KAFKA       PartitionChangeBuilder#electLeader, #canElectLastKnownLeader (KAFKA-19522), recovery state RECOVERING
*)
ElectLastKnown(k) ==
  /\ controller.leader = NoBroker
  /\ controller.isr = {} /\ elr = {}
  /\ k = lastLeader
  /\ LastKnownMayLead(k)
  /\ controller' = Elected(k, {k}, controller.live)
  /\ lastLeader' = NoBroker
  /\ UNCHANGED <<disk, memory, net, committed, crashes, elr, clean, reborn>>

\* WHO the controller, where unclean.leader.election.enable is set.  WHAT elects anybody, when it can elect nobody cleanly;
\* nobody stays eligible beside a leader that may lack records.  KAFKA: PartitionChangeBuilder#maybeUpdateRecordElr.
ElectAnybody(k) ==
  /\ controller.leader = NoBroker
  /\ (IF controller.isr # {} THEN controller.isr ELSE elr) \cap controller.live = {}
  /\ k \in controller.live
  /\ controller' = Elected(k, {k}, controller.live)
  /\ elr' = {}
  /\ lastLeader' = NoBroker
  /\ UNCHANGED <<disk, memory, net, committed, crashes, clean, reborn>>

----------------------------------------------------------------------------------

BrokerStep ==
  \/ \E l \in Broker : LeaderAppend(l)
  \/ \E l, f \in Broker, expand \in BOOLEAN : HandleFetch(l, f, expand)
  \/ \E l \in Broker, removed \in SUBSET Broker : ShrinkIsr(l, removed)
  \/ \E f \in Broker : SendFetch(f)
  \/ \E f, l \in Broker : HandleFetchResponse(f, l)
  \/ \E f, l \in Broker : HandleDivergingResponse(f, l)
  \/ \E f, l \in Broker : HandleOutOfRange(f, l)
  \/ \E f, l \in Broker : LoseResponse(f, l)
  \/ \E b \in Broker : BecomeLeader(b)
  \/ \E b \in Broker : BecomeFollower(b)

\* Of what Replication's controller does, preferred election alone stays as it is.
ElrNext ==
  \/ BrokerStep /\ Proposals /\ UNCHANGED <<elr, lastLeader, clean>>
  \/ \E b \in Broker : Stop(b)
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b], kept \in 0..Leo(b) : CrashAndLose(b, checkpoint, kept)
  \/ \E b \in Broker, k \in BrokerOrNone : FenceElr(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : Register(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : UnfenceElr(b, k)
  \/ \E k \in Broker : ElectPreferred(k) /\ UNCHANGED elrVars
  \/ \E b \in Broker : AlterPartitionElr(b)

\* With a last resort: of every cluster, and of one with unclean election.
LastKnownNext == ElrNext \/ \E k \in Broker : ElectLastKnown(k)
AnybodyNext == ElrNext \/ \E k \in Broker : ElectAnybody(k)

ElrSpec == ElrInit /\ [][ElrNext]_allVars

----------------------------------------------------------------------------------
(* Safety: with elections from ISR and ELR alone *)

\* Whoever may be elected, from the ISR or the ELR, holds everything that was committed.  (A broker that is down has lost
\* what it has lost; it may be elected, but registers before it leads.)
ElectableCompleteness == \A b \in controller.isr \cup elr : up[b] => IsPrefix(committed, log[b])

\* Nobody is eligible beside enough in-sync replicas, and nobody is both.
ElrIsApart == elr \cap controller.isr = {} /\ (Cardinality(controller.isr) >= EffectiveMinIsr => elr = {})

\* The partition has a leader unless all who may be elected are fenced.
ElectsWhomItCan ==
  controller.leader = NoBroker =>
    (IF controller.isr # {} THEN controller.isr ELSE elr) \cap controller.live = {}

\* The leader is not fenced.
LeaderIsLive == controller.leader # NoBroker => controller.leader \in controller.live

\* A last known leader is known only while there is no leader.
LastLeaderIsLast == lastLeader # NoBroker => controller.leader = NoBroker

\* What is committed for the first time is on min.insync.replicas logs; where no log loses its end.
CommittedOnMinIsr ==
  [][Len(committed') > Len(committed)
       => Cardinality({b \in Broker : IsPrefix(committed', log'[b])}) >= EffectiveMinIsr]_allVars

\* Checked by TLC within bounds (MCELR*.cfg); not proved.
THEOREM ElectableAreComplete == ElrSpec => []ElectableCompleteness
THEOREM ElrStaysApart        == ElrSpec => []ElrIsApart
==================================================================================
