----------------------------------- MODULE Acks -----------------------------------
(***********************************************************************************
 Clients: producers, who are told when a record is safe, and consumers, who are shown
 what is.  `Replication` and `ELR` have neither: there, `committed` stands for what may
 have been acknowledged and read.

 What is modelled
   * acks=1: acknowledged as soon as the leader has appended the record.
   * acks=all: refused when too few are in sync; else appended, and the producer waits at
     this leader until its high watermark has passed the record, or until it leads no more.
   * A broker answers everybody who waits at it when it loses its role, before it reads
     metadata again.  It has to: it remembers where the record ended, not which it was.
   * min.insync.replicas where Kafka asks for it: at the append, at the high watermark
     (KAFKA-15583) and at the acknowledgement.

 What is left out: acks=0, which differs from acks=1 in that nobody hears; timeouts, since
 who is told REQUEST_TIMED_OUT knows no more than who still waits; producers that try again
 (their own traces: producer ids and sequences); consumers at followers (KIP-392).

 With the clean restarts and elections of `Replication` (AcksSpec) no more is at stake than
 who leads next.  What min.insync.replicas is for shows where logs are lost: with the
 brokers and the controller of `ELR` (AcksElrSpec).

 Sources: apache/kafka ReplicaManager#appendRecords, #applyLocalFollowersDelta,
 Partition#appendRecordsToLeader, #checkEnoughReplicasReachOffset, #fetchRecords,
 DelayedProduce#tryComplete; KAFKA-15583.
 ***********************************************************************************)
EXTENDS ELR

CONSTANT Producers      \* which acks producers ask for: some of "1" and "all"

ASSUME ProducersAreKnown == Producers \subseteq {"1", "all"}

VARIABLES
  waiting,      \* waiting[l]: the produces with acks=all that wait at l, oldest first: the end of the record, and its
                \* epoch, which is bookkeeping: l remembers the end alone
  acked         \* bookkeeping: the records whose producers were told that all is well, and the acks they had asked for

clientVars == <<waiting, acked>>
acksVars == <<allVars, clientVars>>

Produced == [end : Nat \ {0}, epoch : Epoch]
Acknowledged == [offset : Nat, epoch : Epoch, acks : {"1", "all"}]

AcksTypeOK ==
  /\ ElrTypeOK
  /\ waiting \in [Broker -> Seq(Produced)]
  /\ acked \in SUBSET Acknowledged

AcksInit ==
  /\ ElrInit
  /\ waiting = [l \in Broker |-> <<>>]
  /\ acked = {}

----------------------------------------------------------------------------------
(* Decisions: taken away by name in a .cfg *)

\* An append with acks=all is refused.  KAFKA: Partition#appendRecordsToLeader, NOT_ENOUGH_REPLICAS.
RefusesAppend(l) == UnderMinIsr(isr[l], pending[l])

\* A record that ends here is safe.  KAFKA: Partition#checkEnoughReplicasReachOffset.
ReachedByEnough(l, end) == hw[l] >= end

\* Too few hold it all the same.  Unlike the other two questions, this one counts a member that is proposed: it has reached
\* the high watermark, and is counted for it since.
TooFewAfterAppend(l) == Cardinality(MaximalIsr(isr[l], pending[l])) < EffectiveMinIsr

\* Whether b may read metadata: not while somebody waits for a response from a broker that leads no more.
\* KAFKA: ReplicaManager#completeDelayedOperationsWhenNotPartitionLeader, under replicaStateChangeLock.
HasAnswered(b) == role[b] = "leader" \/ waiting[b] = <<>>

----------------------------------------------------------------------------------
(* Clients at a leader *)

LeadsNow(l) == up[l] /\ role[l] = "leader"
NextRecord(l, acks) == [offset |-> Leo(l), epoch |-> epoch[l], acks |-> acks]
IsReported(record) == acked' = acked \cup {record}

(*
  WHO         a leader, asked by a producer
  WHAT        appends a record.  With acks=1 it acknowledges it at once; with acks=all the producer waits
  KAFKA       ReplicaManager#appendRecords, #delayedProduceRequestRequired, Partition#appendRecordsToLeader
  SIMPLIFIED  whoever could be answered at once waits until AnswerProduce
*)
Produce(l, acks) ==
  /\ acks = "all" => ~RefusesAppend(l)
  /\ IF acks = "all"
     THEN /\ waiting' = [waiting EXCEPT ![l] = Append(@, [end |-> Leo(l) + 1, epoch |-> epoch[l]])]
          /\ UNCHANGED acked
     ELSE /\ IsReported(NextRecord(l, acks))
          /\ UNCHANGED waiting
  /\ LeaderAppend(l)
  /\ UNCHANGED elrVars

\* WHO a leader, asked with acks=all while too few are in sync.  WHAT appends nothing and says NOT_ENOUGH_REPLICAS.
\* KAFKA: Partition#appendRecordsToLeader.
RefuseProduce(l) ==
  /\ "all" \in Producers
  /\ LeadsNow(l)
  /\ RefusesAppend(l)
  /\ UNCHANGED acksVars

\* What a producer who waits at l is told, if anything.
ResponseTo(l, end) ==
  IF      role[l] # "leader"        THEN "NOT_LEADER_OR_FOLLOWER"
  ELSE IF ~ReachedByEnough(l, end)  THEN "nothing yet"
  ELSE IF TooFewAfterAppend(l)      THEN "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
  ELSE                                   "NONE"

(*
  WHO         a broker at which a producer waits
  WHAT        acknowledges the record that its high watermark has passed; or says that too few are in sync by now, or that
              it leads no more, and then the record may be lost or may stay
  KAFKA       DelayedProduce#tryComplete, Partition#checkEnoughReplicasReachOffset
  SIMPLIFIED  no purgatory: a response may leave at any time after it is possible
*)
AnswerProduce(l, i) ==
  /\ i \in 1..Len(waiting[l])
  /\ LET produced == waiting[l][i]
         response == ResponseTo(l, produced.end)
     IN  /\ response # "nothing yet"
         /\ IF response = "NONE"
            THEN IsReported([offset |-> produced.end - 1, epoch |-> produced.epoch, acks |-> "all"])
            ELSE UNCHANGED acked
  /\ waiting' = [waiting EXCEPT ![l] = SubSeq(@, 1, i - 1) \o SubSeq(@, i + 1, Len(@))]
  /\ UNCHANGED allVars

(*
  WHO         a leader, asked by a consumer
  WHAT        shows what is between its log start and its high watermark.  Nobody remembers; that it was committed is
              NoFalseExposure
  KAFKA       Partition#fetchRecords, FetchIsolation.HIGH_WATERMARK
*)
Read(l) ==
  /\ LeadsNow(l)
  /\ hw[l] > LogStartOf(l)
  /\ UNCHANGED acksVars

----------------------------------------------------------------------------------
(* The protocol, with clients beside it *)

ClientsWait == UNCHANGED clientVars

\* A broker that dies answers nobody.
ClientsLose(b) ==
  /\ waiting' = [waiting EXCEPT ![b] = <<>>]
  /\ UNCHANGED acked

ReadsMetadata(b) ==
  /\ HasAnswered(b)
  /\ BecomeLeader(b) \/ BecomeFollower(b)

\* What brokers do of themselves, but for LeaderAppend: an append is a produce here.
UnaskedStep ==
  \/ \E l, f \in Broker, expand \in BOOLEAN : HandleFetch(l, f, expand)
  \/ \E l \in Broker, removed \in SUBSET Broker : ShrinkIsr(l, removed)
  \/ \E f \in Broker : SendFetch(f)
  \/ \E f, l \in Broker : HandleFetchResponse(f, l)
  \/ \E f, l \in Broker : HandleDivergingResponse(f, l)
  \/ \E f, l \in Broker : HandleOutOfRange(f, l)
  \/ \E f, l \in Broker : LoseResponse(f, l)
  \/ \E b \in Broker : ReadsMetadata(b)

\* What the controller of Replication does, and brokers with it.
ControllerStep ==
  \/ \E b \in Broker : Restart(b)
  \/ \E b \in Broker, k \in BrokerOrNone : FenceBroker(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : UnfenceBroker(b, k)
  \/ \E k \in Broker : ElectPreferred(k)
  \/ \E b \in Broker : AlterPartition(b)

\* What the controller of ELR does, and brokers with it.
ElrControllerStep ==
  \/ \E b \in Broker, k \in BrokerOrNone : FenceElr(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : Register(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : UnfenceElr(b, k)
  \/ \E k \in Broker : ElectPreferred(k) /\ UNCHANGED elrVars
  \/ \E b \in Broker : AlterPartitionElr(b)

ClientStep ==
  \/ \E l \in Broker, acks \in Producers : Produce(l, acks)
  \/ \E l \in Broker : RefuseProduce(l)
  \/ \E l \in Broker : \E i \in 1..Len(waiting[l]) : AnswerProduce(l, i)
  \/ \E l \in Broker : Read(l)

AcksNext ==
  \/ ClientStep
  \/ ClientsWait /\ (UnaskedStep \/ ControllerStep) /\ UNCHANGED elrVars
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b] :
       ClientsLose(b) /\ Crash(b, checkpoint, Leo(b)) /\ UNCHANGED elrVars

AcksElrNext ==
  \/ ClientStep
  \/ ClientsWait /\ UnaskedStep /\ Proposals /\ UNCHANGED <<elr, lastLeader, clean>>
  \/ ClientsWait /\ ElrControllerStep
  \/ \E b \in Broker : ClientsLose(b) /\ Stop(b)
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b], kept \in 0..Leo(b) :
       ClientsLose(b) /\ CrashAndLose(b, checkpoint, kept)

AcksSpec == AcksInit /\ [][AcksNext]_acksVars
AcksElrSpec == AcksInit /\ [][AcksElrNext]_acksVars

----------------------------------------------------------------------------------
(* Safety *)

Holds(b, r) == Leo(b) > r.offset /\ log[b][r.offset + 1] = r.epoch
AckedWith(acks) == {r \in acked : r.acks = acks}

\* Nobody hears that all is well before it is: what was acknowledged with acks=all is committed.
AckedIsCommitted ==
  \A r \in AckedWith("all") : Len(committed) > r.offset /\ committed[r.offset + 1] = r.epoch

\* Every running replica that may be elected holds all records acknowledged with acks=all.
AckedCompleteness == \A r \in AckedWith("all"), b \in controller.isr \cup elr : up[b] => Holds(b, r)

\* The leader of the current epoch has whatever was acknowledged, with whatever acks.
NothingAckedIsLost == \A r \in acked, b \in Broker : IsCurrentLeader(b) => Holds(b, r)

\* What is acknowledged with acks=all is on min.insync.replicas logs when it is: this alone is what the setting promises ...
AckedOnMinIsr ==
  [][\A r \in acked' \ acked : r.acks = "all" => Cardinality({b \in Broker : Holds(b, r)}) >= EffectiveMinIsr]_acksVars

\* ... and what it is worth: while fewer logs than that are lost, the record is somewhere.
AckedIsSomewhere == \A r \in AckedWith("all") : crashes < EffectiveMinIsr => \E b \in Broker : Holds(b, r)

\* Checked by TLC within bounds (MCAcks*.cfg); not proved.
THEOREM AckedAreCommitted == AcksSpec => []AckedIsCommitted
THEOREM AckedAreComplete  == AcksSpec /\ NoEpochMissed => []AckedCompleteness
THEOREM AckedAreOnMinIsr  == AcksSpec => AckedOnMinIsr
THEOREM AckedSurvive      == AcksElrSpec => [](AckedCompleteness /\ AckedIsSomewhere)
==================================================================================
