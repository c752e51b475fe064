------------------------------- MODULE Controller --------------------------------
(***********************************************************************************
 The controller of a KRaft cluster and one partition: who may lead it, and what that is
 worth.  Brokers register, are fenced and unfenced, stop in order or die, lose disks;
 replicas are reassigned; min.insync.replicas changes; the topic is deleted.

 What is modelled
   * Each change of the partition as PartitionChangeBuilder makes it, replicas in their
     order: the leader is elected from the ISR, the ELR (KIP-966), as last known leader,
     or, where that is enabled, from anybody.
   * Brokers: registered, fenced, in controlled shutdown; their processes; the directory
     of the replica.  A registration is clean if the process stopped in order and every
     log directory it names says so.
   * The index of eligible leaders beside the registrations, as it is kept (F6).
   * Logs as far as the promise needs them: a cleanly elected leader holds everything that
     was below the high watermark, which is what acks=all reports, since the high
     watermark stands still while the ISR is below min.insync.replicas (KAFKA-15583).

 What is left out: everything in flight.  Metadata reaches all brokers at once, a follower
 fetches all it lacks in one step, a leader's proposal is decided when it is made; the
 rules of replication itself are in `Replication`, those of proposals in `AlterPartition`.
 Only a changed min.insync.replicas may reach the leader late.  Other partitions matter
 by one thing: how many replicas the topic's partition 0 has.

 Each bug is a switch, with the name it has in impl/profiles.py; TRUE is Kafka 4.3.1.

 Sources: apache/kafka ReplicationControlManager, PartitionChangeBuilder,
 PartitionReassignmentReplicas, PartitionReassignmentRevert, ClusterControlManager,
 ConfigurationControlManager, BrokersToElrs, BrokerHeartbeatManager, as of 4.3.1; KIP-966.
 ***********************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Broker,           \* their ids, from 1: the order of them is that of lists that the controller writes
  PartitionZero,    \* how many replicas the topic's partition 0 has; 0 where this is that partition
  Unclean,          \* unclean.leader.election.enable
  ElrKeepsRemoved, MinIsrByPartitionZero,    \* F4
  MinIsrChangeClearsElr,                     \* F5
  IndexesGoStale,                            \* F6
  ReassignmentKeepsAdding,                   \* F7
  HeartbeatInOnePass,                        \* F8
  CompletesBeforeElection,                   \* F12
  NeglectsElrWhenOff,                        \* F9
  RecreatedStaysEligible,                    \* F10
  RaisedMinIsrKeepsEpoch,                    \* F11
  ForgetsLastMember                          \* F13

NoBroker == 0
ASSUME IdsAreNumbers == Broker \subseteq Nat \ {NoBroker} /\ IsFiniteSet(Broker)

VARIABLES
  reg,          \* what the controller has of the partition
  broker,       \* broker[b]: [registered, fenced, stopping]
  place,        \* place[b]: where its replica lies: the "first" directory, which may have "failed", or the "second"
  process,      \* process[b]: "up"; "stopping", which asks the controller first; "stopped" in order; "dead"
  log,          \* log[b]: leader epochs of records
  committed,    \* bookkeeping: what was ever below the high watermark, as far as no unclean election gave it up
  minIsr,       \* min.insync.replicas of the topic
  knownMinIsr,  \* as the leader knows it
  index,        \* index[b]: the partitions that the controller finds b eligible in; more than there are (F6)
  stale,        \* the brokers whose index names a topic that is no more
  elrOn         \* eligible.leader.replicas.version is not 0

vars == <<reg, broker, place, process, log, committed, minIsr, knownMinIsr, index, stale, elrOn>>
data == <<log, committed>>
control == <<reg, broker, place, process, minIsr, index, stale, elrOn>>

----------------------------------------------------------------------------------
(* Values *)

Range(sequence) == {sequence[i] : i \in 1..Len(sequence)}
MinOf(S) == CHOOSE x \in S : \A y \in S : x <= y
RECURSIVE Sorted(_)
Sorted(S) == IF S = {} THEN <<>> ELSE <<MinOf(S)>> \o Sorted(S \ {MinOf(S)})
Without(sequence, members) == SelectSeq(sequence, LAMBDA b : b \notin members)

\* What all logs of a set begin with.
RECURSIVE Shared(_)
Shared(logs) ==
  IF (\E one \in logs : one = <<>>) \/ Cardinality({Head(one) : one \in logs}) > 1 THEN <<>>
  ELSE <<Head(CHOOSE one \in logs : TRUE)>> \o
         (IF Cardinality(logs) = 1 THEN Tail(CHOOSE one \in logs : TRUE) ELSE Shared({Tail(one) : one \in logs}))
IsPrefix(short, long) == Len(short) <= Len(long) /\ SubSeq(long, 1, Len(short)) = short

\* A partition that is led by its first replica, everybody in sync.  `last` is the last known leader, in a list.
Led(replicas) ==
  [replicas |-> replicas, adding |-> {}, removing |-> {}, isr |-> Range(replicas), elr |-> {}, last |-> <<>>,
   leader |-> replicas[1], recovering |-> FALSE, leaderEpoch |-> 0, epoch |-> 0]
Deleted ==
  [replicas |-> <<>>, adding |-> {}, removing |-> {}, isr |-> {}, elr |-> {}, last |-> <<>>,
   leader |-> NoBroker, recovering |-> FALSE, leaderEpoch |-> 0, epoch |-> 0]
Exists == reg # Deleted

Init(replicas, minimum) ==
  /\ reg = Led(replicas)
  /\ broker = [b \in Broker |-> [registered |-> TRUE, fenced |-> FALSE, stopping |-> FALSE]]
  /\ place = [b \in Broker |-> "first"]
  /\ process = [b \in Broker |-> "up"]
  /\ log = [b \in Broker |-> <<>>]
  /\ committed = <<>>
  /\ minIsr = minimum
  /\ knownMinIsr = minimum
  /\ index = [b \in Broker |-> <<>>]
  /\ stale = {}
  /\ elrOn = TRUE

----------------------------------------------------------------------------------
(* A change of the partition.  KAFKA: PartitionChangeBuilder#build *)

\* Registered, not fenced, not shutting down.  KAFKA: ClusterControlManager#isActive.
Active == {b \in Broker : broker[b].registered /\ ~broker[b].fenced /\ ~broker[b].stopping}

\* KAFKA: ReplicationControlManager#getTopicEffectiveMinIsr.
EffectiveMinIsr(p, minimum) ==
  MinOf({minimum, IF MinIsrByPartitionZero /\ PartitionZero > 0 THEN PartitionZero ELSE Len(p.replicas)})

\* The target without what is removed, once enough is in sync.  KAFKA: PartitionReassignmentReplicas
\* #maybeCompleteReassignment (KAFKA-19975).
Completed(t) ==
  LET isr == t.isr \ t.removing
      replicas == Without(t.replicas, t.removing)
      needed == t.adding \cup (IF Cardinality(t.adding) < Cardinality(t.removing) THEN Range(replicas) ELSE {})
  IN  IF \/ t.adding \cup t.removing = {}
         \/ t.removing # {} /\ (isr = {} \/ replicas = <<>>)
         \/ ~(needed \subseteq isr)
      THEN t
      ELSE [t EXCEPT !.replicas = replicas, !.isr = isr, !.adding = {}, !.removing = {}]

\* Who is eligible beside the ISR of the target.  F4: Kafka keeps who is removed, and may be added again, empty.  Who is being
\* added need not leave: it has come in by the ISR.
\* KAFKA: PartitionChangeBuilder#maybePopulateTargetElr.
WithoutGhosts(t) ==
  LET trusted == IF ElrKeepsRemoved THEN Broker \cup {NoBroker} ELSE Range(t.replicas)
  IN  [t EXCEPT !.elr = @ \cap trusted, !.last = SelectSeq(@, LAMBDA b : b \in trusted)]
WithElr(p, t, lost, minimum) ==
  LET elr == (p.elr \cup p.isr) \ (t.isr \cup lost)
  IN  WithoutGhosts([t EXCEPT !.elr = IF ~elrOn THEN @ \ lost ELSE IF Cardinality(t.isr) >= minimum THEN {} ELSE elr])

\* Who is elected, and whether data may be lost.  Asked of a broker that is active and no replica, Kafka throws: there is no
\* directory to look up.  KAFKA: PartitionChangeBuilder#electLeader, ReplicationControlManager.LeaderAcceptor.
Nobody == [leader |-> NoBroker, unclean |-> FALSE, throws |-> FALSE]
Elected(p, b, unclean) == [leader |-> b, unclean |-> unclean, throws |-> b \notin Range(p.replicas)]

Elect(p, t, election, active) ==
  LET eligible == IF t.isr # {} THEN t.isr ELSE t.elr
      asked == {b \in active : b \in Range(p.replicas) => place[b] # "failed"}
      first == IF election = "preferred" THEN <<t.replicas[1]>> ELSE <<>>
      clean == SelectSeq(first \o <<t.leader>> \o t.replicas, LAMBDA b : b \in eligible \cap asked)
      anybody == SelectSeq(t.replicas, LAMBDA b : b \in asked)
  IN  IF clean # <<>> THEN Elected(p, clean[1], FALSE)
      ELSE IF elrOn /\ eligible = {} /\ Len(t.last) = 1 /\ t.last[1] \in asked THEN Elected(p, t.last[1], TRUE)
      ELSE IF election = "unclean" /\ anybody # <<>> THEN Elected(p, anybody[1], TRUE)
      ELSE Nobody

\* Whether a leader elected from the ELR that is enough alone leaves nobody eligible beside it.  Kafka needs no such rule, since
\* another min.insync.replicas forgets every ELR; where F5 is repaired it does (MCController/KeptElrOutlivesElection.cfg).
ElrEndsWithElection == ~MinIsrChangeClearsElr

\* Whom the partition remembers as last known leader: who leads until now.  F13: who goes where nobody leads already is not
\* remembered; repaired, as soon as nobody else is waited for.  KAFKA: PartitionChangeBuilder#maybeUpdateLastKnownLeader.
Remembered(p, t, leader, names, waited) ==
  LET kafka == IF ~elrOn \/ ~names THEN t.last
               ELSE IF leader # NoBroker THEN <<>>
               ELSE IF t.last # <<>> THEN t.last ELSE <<p.leader>>
      known == Without(kafka, {NoBroker})
  IN  IF ForgetsLastMember THEN kafka
      ELSE IF known # <<>> \/ waited # {} \/ leader # NoBroker THEN known
      ELSE SelectSeq(t.replicas, LAMBDA b : b \in p.isr \cup p.elr)

\* What is asked of p, as a record has it: the partition after it, and whether it names a leader.  F12: whether a reassignment
\* is complete is looked at before the election, and not again.  With the feature off nobody stays eligible, though who was
\* may be elected (F9), and the last member stays in the ISR.  F13: nor is anybody kept whom a partition without leader waits
\* for; nothing is committed while it has none.
Change(p, asked, lost, election, active, minimum) ==
  LET first == WithElr(p, Completed(asked), lost, minimum)
      e == Elect(p, first, election, active)
      changes == e.leader # p.leader
      alone == changes /\ (e.unclean \/ e.leader \in first.elr)
      led == IF alone THEN [first EXCEPT !.isr = {e.leader}, !.elr = @ \ {e.leader}] ELSE first
      t == IF CompletesBeforeElection THEN led ELSE WithoutGhosts(Completed(led))
      isr == IF t.isr = {} /\ ~elrOn THEN p.isr ELSE t.isr
      enough == ElrEndsWithElection /\ Cardinality(isr) >= minimum
      waits == ~ForgetsLastMember /\ isr = {} /\ e.leader = NoBroker
      elr == IF (changes /\ e.unclean) \/ enough \/ ~(elrOn \/ waits) THEN {} ELSE t.elr
      names == changes \/ ~(Range(p.replicas) \subseteq Range(t.replicas))
  IN  [throws |-> e.throws, names |-> names,
       after |-> [t EXCEPT !.isr = isr, !.elr = elr, !.leader = e.leader,
                           !.last = Remembered(p, t, e.leader, names, isr \cup elr),
                           !.recovering = @ \/ (changes /\ e.unclean)]]
IsChange(p, change) == change.names \/ change.after # p

\* Where the index has the partition.  KAFKA: BrokersToElrs#update, #remove: an entry held twice leaves a 0 behind.
Number == IF PartitionZero = 0 THEN 0 ELSE 1
Listed(entries, before, after) ==
  [b \in Broker |->
     IF b \in after \ before THEN Append(entries[b], Number)
     ELSE IF b \in before \ after
     THEN LET left == SelectSeq(entries[b], LAMBDA n : n # Number)
          IN  left \o [i \in 1..(Len(entries[b]) - 1 - Len(left)) |-> 0]
     ELSE entries[b]]

\* A record made from p, replayed so often on what is there by then.  KAFKA: PartitionRegistration#merge.
Replayed(s, p, change, times) ==
  IF times = 0 \/ ~IsChange(p, change) THEN s
  ELSE LET q == s.reg
           a == change.after
           after == [replicas |-> IF a.replicas # p.replicas THEN a.replicas ELSE q.replicas,
                     adding |-> IF a.adding # p.adding THEN a.adding ELSE q.adding,
                     removing |-> IF a.removing # p.removing THEN a.removing ELSE q.removing,
                     isr |-> IF a.isr # p.isr THEN a.isr ELSE q.isr,
                     elr |-> IF a.elr # p.elr THEN a.elr ELSE q.elr,
                     last |-> IF a.last # p.last THEN a.last ELSE q.last,
                     leader |-> IF a.leader # p.leader THEN a.leader ELSE q.leader,
                     recovering |-> IF a.recovering # p.recovering THEN a.recovering ELSE q.recovering,
                     leaderEpoch |-> q.leaderEpoch + (IF change.names THEN times ELSE 0),
                     epoch |-> q.epoch + times]
       IN  [reg |-> after, index |-> Listed(s.index, q.elr, after.elr)]

Now == [reg |-> reg, index |-> index]
Automatic == IF Unclean THEN "unclean" ELSE "online"

\* Without `gone` in the ISR; `lost` leaves the ELR as well.  KAFKA: ReplicationControlManager#generateLeaderAndIsrUpdates.
Leaving(p, gone, lost, active) ==
  Change(p, [p EXCEPT !.isr = @ \ gone], lost, Automatic, active, EffectiveMinIsr(p, minIsr))

\* What brokers make of it: who is no replica deletes its log; an unclean election gives up what the elected lacks.
GivesUp(after) ==
  /\ after.leader \notin {NoBroker, reg.leader}
  /\ after.leader \notin reg.isr \cup reg.elr
  /\ after.recovering
Runs(state) == state \in {"up", "stopping"}
Settled(s, processes, logs) ==
  /\ reg' = s.reg
  /\ index' = s.index
  /\ process' = processes
  /\ log' = [b \in Broker |-> IF b \notin Range(s.reg.replicas) /\ Runs(processes[b]) THEN <<>> ELSE logs[b]]
  /\ committed' = IF s.reg = Deleted THEN <<>>
                  ELSE IF GivesUp(s.reg) THEN Shared({committed, logs[s.reg.leader]}) ELSE committed
HearsAll == knownMinIsr' = IF reg' = reg THEN knownMinIsr ELSE minIsr'

----------------------------------------------------------------------------------
(* Leader and followers *)

CanServe(b) == b # NoBroker /\ Runs(process[b]) /\ place[b] # "failed"

LeaderAppend(l) ==
  /\ l = reg.leader
  /\ CanServe(l)
  /\ log' = [log EXCEPT ![l] = Append(@, reg.leaderEpoch)]
  /\ UNCHANGED <<control, committed, knownMinIsr>>

\* WHO a follower.  WHAT fetches until its log is the leader's.
CatchUp(f) ==
  /\ CanServe(reg.leader)
  /\ f \in Range(reg.replicas) \ {reg.leader}
  /\ CanServe(f)
  /\ log[f] # log[reg.leader]
  /\ log' = [log EXCEPT ![f] = log[reg.leader]]
  /\ UNCHANGED <<control, committed, knownMinIsr>>

\* WHO the leader.  WHAT raises the high watermark to what the ISR holds, and answers producers.
\* KAFKA: Partition#maybeIncrementLeaderHW, #effectiveMinIsr.
Acknowledge ==
  /\ CanServe(reg.leader)
  /\ Cardinality(reg.isr) >= MinOf({knownMinIsr, Len(reg.replicas)})
  /\ LET below == Shared({log[b] : b \in reg.isr \cup {reg.leader}})
     IN  /\ Len(below) > Len(committed)
         /\ committed' = below
  /\ UNCHANGED <<control, log, knownMinIsr>>

\* Whether the leader proposes in the leader epoch that the controller has.  The repair of F11: raising min.insync.replicas gives
\* the partition another one, so that who has not read of it proposes in vain.  One that knows as much by an earlier value is
\* let pass here, though Kafka would refuse it too; and records have the controller's epoch: nobody else leads meanwhile.
KnowsItsEpoch == RaisedMinIsrKeepsEpoch \/ knownMinIsr >= minIsr

\* WHO the leader and the controller.  WHAT change the ISR; the leader learns of it by the response, and of nothing else.
\* KAFKA: ReplicationControlManager#alterPartition, which also ends RECOVERING.
Propose(isr) ==
  /\ KnowsItsEpoch
  /\ isr \subseteq Range(reg.replicas) \cap Active
  /\ reg.leader \in isr
  /\ LET change == Change(reg, [reg EXCEPT !.isr = isr, !.recovering = FALSE], {}, Automatic, Active,
                          EffectiveMinIsr(reg, minIsr))
     IN  /\ ~change.throws
         /\ Settled(Replayed(Now, reg, change, 1), process, log)
  /\ UNCHANGED <<broker, place, minIsr, knownMinIsr, stale, elrOn>>

Expand(f) ==
  /\ CanServe(reg.leader)
  /\ f \in (Range(reg.replicas) \cap Active) \ reg.isr
  /\ CanServe(f)
  /\ log[f] = log[reg.leader]
  /\ Propose(reg.isr \cup {f})

Shrink(f) ==
  /\ CanServe(reg.leader)
  /\ f \in (Range(reg.replicas) \cap reg.isr) \ {reg.leader}
  /\ log[f] # log[reg.leader]
  /\ Propose(reg.isr \ {f})

\* A leader reads the metadata that it had not read.
ReadConfig ==
  /\ knownMinIsr # minIsr
  /\ knownMinIsr' = minIsr
  /\ UNCHANGED <<control, data>>

----------------------------------------------------------------------------------
(* Brokers, as the controller sees them *)

\* WHO the controller.  WHAT takes a broker out of the ISR, and fences it: its session is over, or it may stop.
\* KAFKA: ReplicationControlManager#handleBrokerFenced.
Fenced(b, processes) ==
  /\ LET change == Leaving(reg, {b}, {}, Active \ {b})
     IN  /\ b \in reg.isr => ~change.throws
         /\ Settled(Replayed(Now, reg, change, IF b \in reg.isr THEN 1 ELSE 0), processes, log)
  /\ broker' = [broker EXCEPT ![b].fenced = TRUE]
  /\ UNCHANGED <<place, minIsr, stale, elrOn>>
  /\ HearsAll

Fence(b) == broker[b].registered /\ ~broker[b].fenced /\ Fenced(b, process)

\* WHO a broker.  WHAT wants to stop.  While it leads it waits, and leads nothing any more.
\* KAFKA: BrokerHeartbeatManager#calculateNextBrokerState, ReplicationControlManager#handleBrokerInControlledShutdown.
ShutDown(b) ==
  LET leads == reg.leader = b /\ b \in reg.isr
      waits == leads /\ ~broker[b].fenced
  IN  /\ broker[b].registered
      /\ Runs(process[b])
      /\ IF ~waits THEN Fenced(b, [process EXCEPT ![b] = "stopped"])
         ELSE /\ ~broker[b].stopping
              /\ LET change == Leaving(reg, {b}, {}, Active \ {b})
                 IN  /\ ~change.throws
                     /\ Settled(Replayed(Now, reg, change, 1), [process EXCEPT ![b] = "stopping"], log)
              /\ broker' = [broker EXCEPT ![b].stopping = TRUE]
              /\ UNCHANGED <<place, minIsr, stale, elrOn>>
              /\ HearsAll

\* A heartbeat that unfences: any partition without leader gets one.  KAFKA: ReplicationControlManager#handleBrokerUnfenced.
Unfencing(s, b, active) == Leaving(s.reg, {}, {}, active \cup {b})
Unfenced(s, b, change) == Replayed(s, s.reg, change, IF s.reg # Deleted /\ s.reg.leader = NoBroker THEN 1 ELSE 0)

\* The directory of its replica failed: it leaves the ISR.  KAFKA: ReplicationControlManager#handleDirectoriesOffline.
Failing(p, b, active) == Leaving(p, {b}, {}, active \ {b})

(*
  WHO         a fenced broker
  WHAT        is heard again; if it fails, the same heartbeat reports the failure of a directory.  F8: the election of the
              one does not see the other
  KAFKA       QuorumController#processBrokerHeartbeat, ReplicationControlManager#processBrokerHeartbeat
*)
Unfence(b, fails) ==
  /\ broker[b].registered /\ broker[b].fenced
  /\ process[b] = "up"
  /\ fails => b \in Range(reg.replicas) /\ place[b] = "first"
  /\ LET failing == Failing(reg, b, Active)
         first == IF fails THEN Replayed(Now, reg, failing, 1) ELSE Now
         seen == IF HeartbeatInOnePass THEN Now ELSE first
         unfencing == IF HeartbeatInOnePass \/ ~fails THEN Unfencing(seen, b, Active)
                      ELSE Leaving(first.reg, {}, {}, (Active \cup {b}) \ {b})
         unfenced == Unfenced(seen, b, unfencing)
     IN  /\ seen.reg.leader = NoBroker /\ seen.reg # Deleted => ~unfencing.throws
         /\ fails => ~failing.throws
         /\ Settled(IF HeartbeatInOnePass /\ fails THEN Replayed(unfenced, reg, failing, 1) ELSE unfenced,
                    process, IF fails THEN [log EXCEPT ![b] = <<>>] ELSE log)
  /\ broker' = [broker EXCEPT ![b].fenced = FALSE]
  /\ place' = IF fails THEN [place EXCEPT ![b] = "failed"] ELSE place
  /\ UNCHANGED <<minIsr, stale, elrOn>>
  /\ HearsAll

\* WHO a broker.  WHAT loses the directory of its replica, with all that is in it.
FailDirectory(b) ==
  /\ broker[b].registered /\ ~broker[b].fenced
  /\ process[b] = "up"
  /\ b \in Range(reg.replicas) /\ place[b] = "first"
  /\ LET failing == Failing(reg, b, Active)
     IN  /\ ~failing.throws
         /\ Settled(Replayed(Now, reg, failing, 1), process, [log EXCEPT ![b] = <<>>])
  /\ place' = [place EXCEPT ![b] = "failed"]
  /\ UNCHANGED <<broker, minIsr, stale, elrOn>>
  /\ HearsAll

\* WHO a broker.  WHAT dies; its log is kept, or its disk is lost.
Die(b, kept) ==
  /\ Runs(process[b])
  /\ kept \/ log[b] # <<>>
  /\ process' = [process EXCEPT ![b] = "dead"]
  /\ log' = IF kept THEN log ELSE [log EXCEPT ![b] = <<>>]
  /\ UNCHANGED <<reg, broker, place, committed, minIsr, knownMinIsr, index, stale, elrOn>>

\* How often the partition is found by the index of ISRs and that of eligible leaders.
Found(b) == (IF b \in reg.isr THEN 1 ELSE 0) + Len(SelectSeq(index[b], LAMBDA n : n = Number))

\* Whether what ends eligibility is looked at.  F9: not while the feature is off.
\* KAFKA: ReplicationControlManager#handleBrokerShutdown, ConfigurationControlManager#createClearElrRecordsAsNeeded.
KeepsElr == elrOn \/ ~NeglectsElrWhenOff

(*
  WHO         a broker whose process starts
  WHAT        registers, and leaves the ISR before that counts; unless it stopped in order, also the ELR.  `moved`: the
              directory that failed is not one of its directories any more; the replica is made anew, empty, in another one,
              and assigned to it.  F10: a clean stop speaks for the directories that are left, and nobody for that replica
  KAFKA       ClusterControlManager#registerBroker, ReplicationControlManager#handleBrokerShutdown,
              #handleAssignReplicasToDirs; LogManager#readBrokerEpochFromCleanShutdownFiles
*)
Register(b, moved) ==
  /\ ~Runs(process[b])
  /\ moved => place[b] = "failed"
  /\ LET clean == process[b] = "stopped" /\ broker[b].registered /\ (place[b] = "failed" => moved)
         known == clean \/ ~KeepsElr
         change == Leaving(reg, {b}, IF known THEN {} ELSE {b}, Active \ {b})
         times == IF ~known THEN Found(b) ELSE IF b \in reg.isr THEN 1 ELSE 0
         left == Replayed(Now, reg, change, times)
         assigned == Change(left.reg, left.reg, IF RecreatedStaysEligible THEN {} ELSE {b}, "online", Active \ {b},
                            EffectiveMinIsr(left.reg, minIsr))
     IN  /\ known \/ b \notin stale
         /\ times > 0 => ~change.throws
         /\ Settled(IF moved THEN Replayed(left, left.reg, [assigned EXCEPT !.after.epoch = @ + 1], 1) ELSE left,
                    [process EXCEPT ![b] = "up"], log)
  /\ broker' = [broker EXCEPT ![b] = [registered |-> TRUE, fenced |-> TRUE, stopping |-> FALSE]]
  /\ place' = IF place[b] = "failed" THEN [place EXCEPT ![b] = IF moved THEN "second" ELSE "first"] ELSE place
  /\ UNCHANGED <<minIsr, stale, elrOn>>
  /\ HearsAll

\* WHO an operator.  WHAT lets the controller forget a broker that does not run.
\* KAFKA: ReplicationControlManager#handleBrokerUnregistered.
Unregister(b) ==
  /\ ~Runs(process[b])
  /\ broker[b].registered
  /\ b \notin stale
  /\ LET change == Leaving(reg, {b}, {}, Active \ {b})
     IN  /\ Found(b) > 0 => ~change.throws
         /\ Settled(Replayed(Now, reg, change, Found(b)), process, log)
  /\ broker' = [broker EXCEPT ![b] = [registered |-> FALSE, fenced |-> FALSE, stopping |-> FALSE]]
  /\ UNCHANGED <<place, minIsr, stale, elrOn>>
  /\ HearsAll

----------------------------------------------------------------------------------
(* What operators ask for *)

Written(change) ==
  /\ Exists
  /\ ~change.throws
  /\ IsChange(reg, change)
  /\ Settled(Replayed(Now, reg, change, 1), process, log)
  /\ UNCHANGED <<broker, place, minIsr, stale, elrOn>>
  /\ HearsAll

(*
  WHAT    the replicas shall be these.  The target first, then who is removed.  F7: the lists of the reassignment before
          stay where this one adds or removes nobody
  KAFKA   ReplicationControlManager#changePartitionReassignment
*)
Reassign(target) ==
  LET removing == Range(reg.replicas) \ Range(target)
      adding == Range(target) \ Range(reg.replicas)
      replicas == target \o Sorted(removing)
  IN  /\ \A b \in Range(target) : broker[b].registered
      /\ Written(Change(reg, [reg EXCEPT !.replicas = replicas,
                                         !.adding = IF ReassignmentKeepsAdding /\ adding = {} THEN @ ELSE adding,
                                         !.removing = IF ReassignmentKeepsAdding /\ removing = {} THEN @ ELSE removing],
                        {}, "online", Active, EffectiveMinIsr(reg, minIsr)))

\* WHAT the replicas from before; if none of them is in sync, the first, where unclean election is enabled.
\* KAFKA: ReplicationControlManager#cancelPartitionReassignment, PartitionReassignmentRevert.
Cancel ==
  LET replicas == Without(reg.replicas, reg.adding)
      isr == reg.isr \ reg.adding
  IN  /\ reg.adding \cup reg.removing # {}
      /\ replicas # <<>>
      /\ isr # {} \/ Unclean
      /\ Written(Change(reg, [reg EXCEPT !.replicas = replicas, !.isr = IF isr # {} THEN isr ELSE {replicas[1]},
                                         !.adding = {}, !.removing = {}],
                        {}, Automatic, Active, EffectiveMinIsr(reg, minIsr)))

ElectPreferred ==
  /\ Exists /\ reg.leader # reg.replicas[1]
  /\ Written(Change(reg, reg, {}, "preferred", Active, EffectiveMinIsr(reg, minIsr)))

ElectUnclean ==
  /\ Exists /\ reg.leader = NoBroker
  /\ Written(Change(reg, reg, {}, "unclean", Active, EffectiveMinIsr(reg, minIsr)))

(*
  WHAT    another min.insync.replicas; the leader hears of it now, or later.  F5: every ELR is forgotten with it; KIP-966
          forgets those that are not needed any more.  F6: the index is not told.  F11: a leader keeps its epoch
  KAFKA   ConfigurationControlManager#createClearElrRecordsAsNeeded, ReplicationControlManager#removeTopicElrs
*)
SetMinIsr(value, heard) ==
  /\ Exists
  /\ value # minIsr
  /\ minIsr' = value
  /\ knownMinIsr' = IF heard THEN value ELSE knownMinIsr
  /\ LET forgets == /\ KeepsElr
                    /\ reg.elr # {} \/ reg.last # <<>>
                    /\ MinIsrChangeClearsElr \/ Cardinality(reg.isr) >= EffectiveMinIsr(reg, value)
         renews == ~RaisedMinIsrKeepsEpoch /\ value > minIsr /\ reg.leader # NoBroker
         kept == IF forgets THEN [reg EXCEPT !.elr = {}, !.last = <<>>, !.epoch = @ + 1] ELSE reg
     IN  /\ reg' = IF renews THEN [kept EXCEPT !.leaderEpoch = @ + 1, !.epoch = @ + 1] ELSE kept
         /\ index' = IF IndexesGoStale THEN index ELSE Listed(index, reg.elr, reg'.elr)
  /\ UNCHANGED <<broker, place, process, log, committed, stale, elrOn>>

\* WHAT the feature is switched off or on.  ELRs stay as they are.  KAFKA: FeatureControlManager#updateFeatures.
SetElr(on) ==
  /\ Exists
  /\ elrOn # on
  /\ elrOn' = on
  /\ UNCHANGED <<reg, broker, place, process, data, minIsr, knownMinIsr, index, stale>>

\* WHAT the topic is no more.  F6: who is not in the ELR stays in the index.
\* KAFKA: ReplicationControlManager#replay(RemoveTopicRecord), BrokersToElrs#removeTopicEntryForBroker.
Delete ==
  /\ Exists
  /\ stale' = IF IndexesGoStale THEN {b \in Broker : index[b] # <<>> /\ b \notin reg.elr} ELSE {}
  /\ Settled([reg |-> Deleted, index |-> [b \in Broker |-> <<>>]], process, log)
  /\ place' = [b \in Broker |-> "first"]
  /\ minIsr' = 0 /\ knownMinIsr' = 0
  /\ UNCHANGED <<broker, elrOn>>

Next ==
  \/ \E b \in Broker : LeaderAppend(b) \/ CatchUp(b) \/ Expand(b) \/ Shrink(b)
  \/ Acknowledge \/ ReadConfig
  \/ \E b \in Broker : Fence(b) \/ ShutDown(b) \/ FailDirectory(b) \/ Unregister(b)
  \/ \E b \in Broker, flag \in BOOLEAN : Unfence(b, flag) \/ Die(b, flag) \/ Register(b, flag)
  \/ \E target \in Seq(Broker) : target # <<>> /\ Cardinality(Range(target)) = Len(target) /\ Reassign(target)
  \/ \E value \in Nat \ {0}, heard \in BOOLEAN : SetMinIsr(value, heard)
  \/ \E on \in BOOLEAN : SetElr(on)
  \/ Cancel \/ ElectPreferred \/ ElectUnclean \/ Delete

----------------------------------------------------------------------------------
(* What the controller promises *)

\* Whoever leads holds everything that was acknowledged: what unclean elections gave up does not count.
LeaderCompleteness == CanServe(reg.leader) => IsPrefix(committed, log[reg.leader])

\* Who leads is active, and the directory of its replica can be read.
LeaderIsLive == reg.leader # NoBroker => reg.leader \in Active /\ place[reg.leader] # "failed"

LeaderIsInIsr == reg.leader # NoBroker => reg.leader \in reg.isr

\* Without a leader, somebody is waited for: the partition is led again when the right brokers are back.
SomebodyMayLead == Exists /\ reg.leader = NoBroker => reg.isr \cup reg.elr # {} \/ reg.last # <<>>

\* Nobody is eligible beside enough in-sync replicas, or is both, or is no replica.
ElrIsApart == reg.elr \cap reg.isr = {} /\ reg.elr \subseteq Range(reg.replicas)

\* No replica is both added and removed: that would never be complete.
AddsNobodyItRemoves == reg.adding \cap reg.removing = {}

\* A reassignment whose new replicas are all in sync is complete.
CompletesInSync ==
  reg.adding \cup reg.removing # {} /\ Range(reg.replicas) # reg.removing
    => ~(Range(reg.replicas) \ reg.removing \subseteq reg.isr)

\* Whoever starts may register: the controller does not fail on what it remembers.
BrokersMayRegister == stale = {}
==================================================================================
