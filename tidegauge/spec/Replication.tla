------------------------------- MODULE Replication -------------------------------
(***********************************************************************************
 Kafka's replica fetch / truncate / high-watermark protocol, message by message, for
 one partition, as Kafka 3.9.1, 4.0.1 and later run it (profile `fetch-truncation`).

 What is modelled
   * Every action touches one broker or the controller, and the messages it takes or
     sends.  Messages are delayed, lost, and overtaken by metadata.
   * Followers fetch; the leader answers with records, with the point where the logs
     diverge, or with "out of range"; the follower appends or truncates, and fetches again.
   * The leader counts fetch offsets to move the high watermark (HW), and proposes ISR
     changes; the controller commits them and elects leaders, always from the ISR.
   * Brokers crash and restart with an older checkpointed HW.

 What is left out, and why that is safe to leave out here
   * Record contents.  A record is its leader epoch; with its offset that identifies it,
     because an epoch has one writer.
   * Batches and segments: they have rules and traces of their own.
   * What modules beside this one put in, through the decisions below: log start movement
     (LogStartMovement.tla), min.insync.replicas, unclean restarts and elections (ELR.tla);
     and clients, who only look on (Acks.tla).
   * Fetch state beside the log.  With truncation on fetch a follower's fetch offset is
     its log end and lastFetchedEpoch its latest cached epoch, always.  The role
     "truncating" exists where StartsTruncating says so: for the three epoch actions of
     older profiles, and where a truncation that needs no response waits for the fetcher
     thread.  Elsewhere nothing is left to do for that one, or BecomeFollower does it.
   * Metadata messages.  A broker reads the controller's newest image when it reads at
     all; a skipped image is one it never saw, a late image is one it has not read yet.
   * The AlterPartition round trip is one step, and the pending change is the request.
     So there is no partition epoch: a leader of the current epoch knows the newest one
     exactly when its ISR is the controller's.  The price: metadata that repeats the
     partition epoch the leader knows already, and so erases a pending expansion, cannot
     be told here.
   * A broker that keeps its process but loses its session is unfenced in the same step.

 Sources: apache/kafka (Partition, ReplicaManager, AbstractFetcherThread,
 ReplicaFetcherThread, UnifiedLog, LeaderEpochFileCache, ReplicationControlManager),
 KIP-101, KIP-279, KIP-320, KIP-595 (divergingEpoch), KIP-497 (AlterPartition).

 Operator names are the event names of traces.  Other profiles replace operators in a
 .cfg (MCReplication*.cfg); bounds are in MCReplication.tla, none are here.
 ***********************************************************************************)
EXTENDS Rules

CONSTANTS
  Broker,         \* the brokers that hold a replica, all of them assigned
  FirstLeader,    \* the broker that leads epoch 0
  NoBroker,       \* stands for "no leader"
  MaxFetch        \* most records in one response (replica.fetch.max.bytes)

ASSUME BrokersAreFinite == IsFiniteSet(Broker) /\ FirstLeader \in Broker
ASSUME NoBrokerIsNone   == NoBroker \notin Broker
ASSUME ResponsesCarryData == MaxFetch \in Nat \ {0}

VARIABLES
  \* on the broker's disk
  log,          \* log[b]: the leader epochs of its records; the record at offset o is log[b][o + 1]
  hw,           \* hw[b]: high watermark, exclusive; while b is down, the checkpointed one
  mark,         \* mark[b]: epoch of a cache entry that has no record yet (it starts at the log end), or Undefined
  \* in the broker's memory
  up,           \* up[b]: its process runs
  role,         \* role[b]: "none" until metadata arrives, then "leader", "follower", or "truncating": a follower
                \* that has to truncate before it fetches, by the end of its last epoch at the leader, or alone
  epoch,        \* epoch[b]: the newest leader epoch it has read, or Undefined
  leader,       \* leader[b]: the leader of that epoch, or NoBroker
  isr,          \* isr[b]: at a leader, the in-sync replicas it knows to be committed; else {}
  pending,      \* pending[b]: at a leader, the ISR it has proposed and not heard of again; else {}
  remoteLeo,    \* remoteLeo[b][r]: at a leader, the log end of r as of its last fetch; Undefined before
  \* between brokers
  net,          \* net[f][l]: what is in flight between f as follower and l: a request, a response, or Nothing
  \* in the controller
  controller,   \* [leader, epoch, isr, live] as committed to the metadata log; live = not fenced
  \* bookkeeping: read by properties and bounds, never by the protocol
  committed,    \* the longest prefix any leader ever put below its high watermark
  crashes       \* how many times a broker crashed

disk == <<log, hw, mark>>
memory == <<up, role, epoch, leader, isr, pending, remoteLeo>>
vars == <<log, hw, mark, up, role, epoch, leader, isr, pending, remoteLeo, net, controller, committed, crashes>>

----------------------------------------------------------------------------------
(* Types *)

Epoch == Nat
EpochOrNone == Epoch \cup {Undefined}
OffsetOrNone == Nat \cup {Undefined}
BrokerOrNone == Broker \cup {NoBroker}

Nothing == [type |-> "nothing"]
\* Every message carries the epoch and offset of the request: a response is matched by them.
Request    == [type : {"request"}, epoch : Epoch, offset : Nat, lastEpoch : EpochOrNone]
Data       == [type : {"data"}, epoch : Epoch, offset : Nat, hw : Nat, logStart : Nat, records : Seq(Epoch)]
Diverging  == [type : {"diverging"}, epoch : Epoch, offset : Nat, divEpoch : Epoch, divEnd : Nat]
OutOfRange == [type : {"out of range"}, epoch : Epoch, offset : Nat, leaderStart : Nat, leaderEnd : Nat]
\* OffsetsForLeaderEpoch (KIP-101), in profiles before truncation on fetch.
EpochRequest == [type : {"epoch request"}, epoch : Epoch, lastEpoch : Epoch]
EpochEndAt == [type : {"epoch end"}, epoch : Epoch, endEpoch : EpochOrNone, endOffset : OffsetOrNone]
Message == {Nothing} \cup Request \cup Data \cup Diverging \cup OutOfRange \cup EpochRequest \cup EpochEndAt

TypeOK ==
  /\ log \in [Broker -> Seq(Epoch)]
  /\ hw \in [Broker -> Nat]
  /\ mark \in [Broker -> EpochOrNone]
  /\ up \in [Broker -> BOOLEAN]
  /\ role \in [Broker -> {"none", "leader", "follower", "truncating"}]
  /\ epoch \in [Broker -> EpochOrNone]
  /\ leader \in [Broker -> BrokerOrNone]
  /\ isr \in [Broker -> SUBSET Broker]
  /\ pending \in [Broker -> SUBSET Broker]
  /\ remoteLeo \in [Broker -> [Broker -> OffsetOrNone]]
  /\ net \in [Broker -> [Broker -> Message]]
  /\ controller \in [leader : BrokerOrNone, epoch : Epoch, isr : SUBSET Broker, live : SUBSET Broker]
  /\ committed \in Seq(Epoch)
  /\ crashes \in Nat

NobodyKnown == [r \in Broker |-> Undefined]
AllSlotsEmpty == [l \in Broker |-> Nothing]

Init ==
  /\ log = [b \in Broker |-> <<>>]
  /\ hw = [b \in Broker |-> 0]
  /\ mark = [b \in Broker |-> IF b = FirstLeader THEN 0 ELSE Undefined]
  /\ up = [b \in Broker |-> TRUE]
  /\ role = [b \in Broker |-> IF b = FirstLeader THEN "leader" ELSE "follower"]
  /\ epoch = [b \in Broker |-> 0]
  /\ leader = [b \in Broker |-> FirstLeader]
  /\ isr = [b \in Broker |-> IF b = FirstLeader THEN Broker ELSE {}]
  /\ pending = [b \in Broker |-> {}]
  /\ remoteLeo = [b \in Broker |-> NobodyKnown]
  /\ net = [f \in Broker |-> AllSlotsEmpty]
  /\ controller = [leader |-> FirstLeader, epoch |-> 0, isr |-> Broker, live |-> Broker]
  /\ committed = <<>>
  /\ crashes = 0

----------------------------------------------------------------------------------
(* What a log tells *)

LogStart == 0
LogStartOf(b) == LogStart       \* replaced where log starts move

Leo(b) == Len(log[b])

\* The epoch cache of a log: an entry where the epoch of the records changes, and the mark at the end.
CacheOf(records, trailing) ==
  LET position == [i \in 1..Len(records) |-> [epoch |-> records[i], start |-> i - 1]]
      first(e) == (e.start = 0 \/ records[e.start] # e.epoch) /\ e.epoch # Undefined
      entries == SelectSeq(position, first)
  IN  IF trailing = Undefined THEN entries ELSE Append(entries, [epoch |-> trailing, start |-> Len(records)])

Cache(b) == CacheOf(log[b], mark[b])

Prefix(records, n) == SubSeq(records, 1, n)
IsPrefix(s, t) == Len(s) <= Len(t) /\ s = Prefix(t, Len(s))

\* Where the current epoch of a leader starts (leaderEpochStartOffset).  A leader never truncates its log, so this is the log
\* end at the moment it was elected.
EpochStart(l) == Cardinality({i \in 1..Leo(l) : log[l][i] < epoch[l]})

\* The replicas that hold the high watermark back: the committed ISR and, early, a member the leader proposes to add.  A
\* proposed removal counts only once it is committed.  KAFKA: PartitionState#maximalIsr.
MaximalIsr(committedIsr, proposed) == committedIsr \cup proposed

\* Whether too few are in sync for it to move at all: never with min.insync.replicas 1, as here.
\* KAFKA: Partition#isUnderMinIsr (KAFKA-15583).
HoldsHighWatermark(committedIsr, proposed) == FALSE

\* The high watermark of a leader l that raises it, if it may, on what it counts.
LeaderHw(l, h, logEnd, remote, committedIsr, proposed) ==
  IF HoldsHighWatermark(committedIsr, proposed) THEN h
  ELSE LeaderHighWatermark(h, logEnd, {remote[r] : r \in MaximalIsr(committedIsr, proposed) \ {l}})

\* Exposure: whatever a leader puts below its high watermark may have been acknowledged and read.
Expose(records, h) == committed' = IF h > Len(committed) THEN Prefix(records, h) ELSE committed

----------------------------------------------------------------------------------
(* Decisions in which profiles differ; a .cfg replaces them by name *)

\* A request has the version of its sender f, which decides whether there is an epoch in it; who leads knows all versions.

\* The leader turns a request of another epoch away (KIP-320).
FencesEpochs == TRUE
Refuses(l, f, requested) == RequestError(requested, epoch[l], role[l] = "leader", FencesEpochs) # "none"

\* The leader compares the follower's last epoch with its own cache (truncation on fetch).
Decide(l, f, offset, lastEpoch) == FetchDecision(Cache(l), LogStartOf(l), Leo(l), offset, lastEpoch)

\* The follower drops a response to a request of another offset or epoch (KAFKA-18991).
Matches(f, m) == AcceptsFetchResponse(Leo(f), epoch[f], m.offset, m.epoch)

\* A follower may join the ISR.
InSync(l, offset) == MayJoinIsr(offset, hw[l], EpochStart(l))

\* A leader keeps the log ends of its followers from one epoch it leads to the next.  Kafka, 4.3.1 still, is so;
\* MCReplication/MissedEpoch.cfg shows what it costs.
ForgetsFollowers(b) == ForgetsLogEnds(epoch[b], controller.epoch, role[b] = "leader", TRUE)

\* What a broker still knows of other log ends once it follows: nothing.  KAFKA: Partition#makeFollower.
KnownToFollower(b) == NobodyKnown

\* The epoch that a new leader marks its log end with (KAFKA-7415).
MarkOfNewLeader(b) == controller.epoch

\* Whether a new follower has to truncate before it fetches: not with truncation on fetch, and an empty log has nothing to
\* truncate.  Kafka's entry of an empty epoch cache is Truncating all the same until the fetcher thread has seen it; the models
\* whose names begin with Thread have that step.  KAFKA: AbstractFetcherThread#partitionFetchState.
StartsTruncating(b) == FALSE

\* Whether a truncating follower with this last epoch truncates at its high watermark, and asks nobody.
\* KAFKA: AbstractFetcherThread#fetchTruncatingPartitions.
TruncatesAlone(lastEpoch) == lastEpoch = Undefined

\* What a leader answers to that: the epoch it found and its end (KIP-279).
EpochEndFound(l, f, asked) == EndOffsetFor(Cache(l), Leo(l), asked)

\* Whether it takes the response (KIP-320), and where it truncates then: with no response at its high watermark.
EpochEndMatches(f, m) == AcceptsEpochResponse(epoch[f], m.epoch)
TruncateAtEpochEnd(f, m) == TruncationTarget(Cache(f), Leo(f), hw[f], m.endEpoch, m.endOffset)

\* The controller considers a proposal made on the ISR that it has itself.
MadeOnThisIsr(b) == controller.isr = isr[b]

\* The controller takes the members of a proposal.
AcceptsMembers(b) == pending[b] \subseteq controller.live

\* What is left of a log when its broker dies: all of it.
SurvivesCrash(b, kept) == kept = Leo(b)

\* The log of b becomes these records and this mark, without what is before `start`: nothing is, as log starts stand still.
\* KAFKA: UnifiedLog#maybeIncrementLogStartOffset.
MoveLogStart(b, records, trailing, start) ==
  /\ log' = [log EXCEPT ![b] = records]
  /\ mark' = [mark EXCEPT ![b] = trailing]

\* What a follower leaves in flight with other brokers when it fetches from one: nothing, as if each thread had this partition
\* alone.  MCKeeping has threads that other partitions keep alive, and requests that outlive their connection.
LeftInFlight(f) == AllSlotsEmpty

\* What a broker truncates when it becomes a follower: nothing, the leader's response to its first fetch decides.
TruncateOnBecomeFollower(b) == UNCHANGED <<log, mark>>

----------------------------------------------------------------------------------
(* Messages *)

RequestOf(e, records, trailing) ==
  [type |-> "request", epoch |-> e, offset |-> Len(records), lastEpoch |-> LatestEpoch(CacheOf(records, trailing))]

\* One fetcher thread per follower: a fetch to l gives up what is in flight with any other broker.
Send(f, l, request) == net' = [net EXCEPT ![f] = [LeftInFlight(f) EXCEPT ![l] = request]]

Reply(f, l, response) == net' = [net EXCEPT ![f][l] = response]

\* What a follower in state r asks next.
Ask(e, records, trailing, r) ==
  LET last == LatestEpoch(CacheOf(records, trailing))
  IN  IF      r # "truncating"     THEN RequestOf(e, records, trailing)
      ELSE IF TruncatesAlone(last) THEN Nothing
      ELSE                              [type |-> "epoch request", epoch |-> e, lastEpoch |-> last]

Answered(f, l) == net[f][l].type \in {"data", "diverging", "out of range", "epoch end"}

Follows(f, l) == up[f] /\ role[f] = "follower" /\ leader[f] = l
Truncates(f, l) == up[f] /\ role[f] = "truncating" /\ leader[f] = l

\* A response is consumed, taken or not; a follower of l asks again at once, from the log it has then.
AskAgain(f, l, r) ==
  Reply(f, l, IF Follows(f, l) \/ Truncates(f, l) THEN Ask(epoch[f], log'[f], mark'[f], r) ELSE Nothing)
FetchAgain(f, l) == AskAgain(f, l, role[f])

Accepts(f, l) == Follows(f, l) /\ Matches(f, net[f][l])

----------------------------------------------------------------------------------
(* Leader *)

(*
  WHO         a leader
  WHAT        appends a record of its epoch; alone in the ISR it commits it at once
  KAFKA       Partition#appendRecordsToLeader, UnifiedLog#appendAsLeader, Partition#maybeIncrementLeaderHW
  SIMPLIFIED  one record a batch; acks are not looked at: with acks=all it may refuse (NOT_ENOUGH_REPLICAS) what it takes
              with acks=1 (Acks!Produce)
*)
LeaderAppend(l) ==
  /\ up[l]
  /\ role[l] = "leader"
  /\ LET records == Append(log[l], epoch[l])
         h == LeaderHw(l, hw[l], Len(records), remoteLeo[l], isr[l], pending[l])
     IN  /\ log' = [log EXCEPT ![l] = records]
         /\ mark' = [mark EXCEPT ![l] = Undefined]
         /\ hw' = [hw EXCEPT ![l] = h]
         /\ Expose(records, h)
  /\ UNCHANGED <<memory, net, controller, crashes>>

\* What a leader makes of a fetch that it can read: it records f's log end, proposes f for the ISR if `expand`, and tries to
\* raise the high watermark.
RecordFetch(l, f, m, expand) ==
  LET proposed == IF expand THEN isr[l] \cup {f} ELSE pending[l]
      remote == [remoteLeo[l] EXCEPT ![f] = m.offset]
      h == IF m.offset = remoteLeo[l][f] THEN hw[l]
           ELSE LeaderHw(l, hw[l], Leo(l), remote, isr[l], proposed)
  IN  /\ expand => pending[l] = {} /\ f \notin isr[l] /\ InSync(l, m.offset)
      /\ remoteLeo' = [remoteLeo EXCEPT ![l] = remote]
      /\ pending' = [pending EXCEPT ![l] = proposed]
      /\ hw' = [hw EXCEPT ![l] = h]
      /\ Expose(log[l], h)

\* The data half of HandleFetch: the response carries the high watermark from before this fetch counted.
ServeFetch(l, f, m, expand) ==
  /\ RecordFetch(l, f, m, expand)
  /\ Reply(f, l, [type |-> "data", epoch |-> m.epoch, offset |-> m.offset, hw |-> hw[l],
                  logStart |-> LogStartOf(l),
                  records |-> SubSeq(log[l], m.offset + 1, MinOf({m.offset + MaxFetch, Leo(l)}))])

(*
  WHO         the broker l that f's request is addressed to
  WHAT        refuses it; or answers where the logs diverge, or out of range, and records nothing; or answers with
              records, records f's log end, proposes f for the ISR if `expand`, and tries to raise the high watermark
  KAFKA       ReplicaManager#fetchMessages, Partition#fetchRecords, #updateFollowerFetchState, #maybeExpandIsr,
              #maybeIncrementLeaderHW
  SIMPLIFIED  a refused request leaves no response: the follower backs off, and SendFetch may come at any time.  Whether an
              eligible follower is proposed at this fetch is open: eligibility (fencing, broker epochs) is the metadata
              cache's and may lag; the controller checks it again.  A caught-up member outside the ISR does not hold the
              high watermark back.  No purgatory: a response leaves when the request is read
*)
HandleFetch(l, f, expand) ==
  /\ net[f][l].type = "request"
  /\ LET m == net[f][l]
         decision == Decide(l, f, m.offset, m.lastEpoch)
         point == [epoch |-> m.epoch, offset |-> m.offset]
         nothingRecorded == ~expand /\ UNCHANGED <<remoteLeo, pending, hw, committed>>
     IN  IF ~up[l] \/ Refuses(l, f, m.epoch)
         THEN nothingRecorded /\ Reply(f, l, Nothing)
         ELSE CASE decision.kind = "diverging" ->
                     /\ nothingRecorded
                     /\ Reply(f, l, [type |-> "diverging", epoch |-> m.epoch, offset |-> m.offset,
                                     divEpoch |-> decision.epoch, divEnd |-> decision.end])
                [] decision.kind = "out of range" ->
                     /\ nothingRecorded
                     /\ Reply(f, l, [type |-> "out of range", epoch |-> m.epoch, offset |-> m.offset,
                                     leaderStart |-> LogStartOf(l), leaderEnd |-> Leo(l)])
                [] decision.kind = "read" -> ServeFetch(l, f, m, expand)
  /\ UNCHANGED <<log, mark, up, role, epoch, leader, isr, controller, crashes>>

(*
  WHO         a leader
  WHAT        proposes to drop members that are behind its log end
  KAFKA       Partition#maybeShrinkIsr, #getOutOfSyncReplicas
  SIMPLIFIED  no clock: any member that is behind may have been so for replica.lag.time.max.ms
*)
ShrinkIsr(l, removed) ==
  /\ up[l]
  /\ role[l] = "leader"
  /\ pending[l] = {}
  /\ removed # {}
  /\ removed \subseteq {r \in isr[l] \ {l} : remoteLeo[l][r] # Leo(l)}
  /\ pending' = [pending EXCEPT ![l] = isr[l] \ removed]
  /\ UNCHANGED <<disk, up, role, epoch, leader, isr, remoteLeo, net, controller, committed, crashes>>

----------------------------------------------------------------------------------
(* Follower *)

(*
  WHO         a follower with nothing in flight to its leader
  WHAT        fetches from its log end, saying its epoch and the last epoch it holds
  KAFKA       RemoteLeaderEndPoint#buildFetch, AbstractFetcherThread#maybeFetch
*)
SendFetch(f) ==
  /\ up[f]
  /\ role[f] = "follower"
  /\ leader[f] # NoBroker
  /\ net[f][leader[f]] = Nothing
  /\ Send(f, leader[f], RequestOf(epoch[f], log[f], mark[f]))
  /\ UNCHANGED <<disk, memory, controller, committed, crashes>>

(*
  WHO         a follower
  WHAT        appends the records of a response it accepts and takes over the high watermark, which may go down, and the log
              start
  KAFKA       AbstractFetcherThread#processFetchRequest, ReplicaFetcherThread#processPartitionData
*)
HandleFetchResponse(f, l) ==
  /\ net[f][l].type = "data"
  /\ IF Accepts(f, l)
     THEN LET m == net[f][l]
              records == log[f] \o m.records
              h == FollowerHighWatermark(m.hw, LogStartOf(f), Len(records))
          IN  /\ hw' = [hw EXCEPT ![f] = h]
              /\ MoveLogStart(f, records, IF m.records = <<>> THEN mark[f] ELSE Undefined, MinOf({m.logStart, h}))
     ELSE UNCHANGED disk
  /\ FetchAgain(f, l)
  /\ UNCHANGED <<memory, controller, committed, crashes>>

\* UnifiedLog#truncateTo: cache entries at or above the new end go even when no record does (KAFKA-10706), so the mark goes.
TruncateAt(f, target) ==
  /\ log' = [log EXCEPT ![f] = Prefix(@, MinOf({target, Len(@)}))]
  /\ hw' = [hw EXCEPT ![f] = HighWatermarkAfterTruncation(@, target)]
  /\ mark' = [mark EXCEPT ![f] = Undefined]

\* UnifiedLog#truncateFullyAndStartAt: nothing before `start` is left, and the high watermark is there.
StartAt(f, start) ==
  /\ log' = [log EXCEPT ![f] = [i \in 1..start |-> Undefined]]
  /\ hw' = [hw EXCEPT ![f] = start]
  /\ mark' = [mark EXCEPT ![f] = Undefined]

(*
  WHO         a follower
  WHAT        truncates where its log and the leader's part; when it knows nothing of the leader's epoch it truncates to its own
              next lower one, and the next fetch is answered again
  KAFKA       AbstractFetcherThread#truncateOnFetchResponse, #getOffsetTruncationState, UnifiedLog#truncateTo
  SIMPLIFIED  high watermark and log start of such a response are not looked at, as in Kafka since KAFKA-14704
*)
HandleDivergingResponse(f, l) ==
  /\ net[f][l].type = "diverging"
  /\ IF Accepts(f, l)
     THEN LET m == net[f][l]
          IN  TruncateAt(f, TruncationTarget(Cache(f), Leo(f), m.offset, m.divEpoch, m.divEnd).offset)
     ELSE UNCHANGED disk
  /\ FetchAgain(f, l)
  /\ UNCHANGED <<memory, controller, committed, crashes>>

(*
  WHO         a follower
  WHAT        truncates to the leader's end when it is ahead of it; drops its log and starts at the leader's start when it is
              before that; else goes on from its own log end
  KAFKA       AbstractFetcherThread#handleOutOfRangeError, #fetchOffsetAndTruncate, UnifiedLog#truncateFullyAndStartAt
  SIMPLIFIED  the two ListOffsets responses travel with the error
*)
HandleOutOfRange(f, l) ==
  /\ net[f][l].type = "out of range"
  /\ LET m == net[f][l]
         reset == OutOfRangeReset(m.leaderStart, m.leaderEnd, Leo(f))
     IN  CASE Accepts(f, l) /\ reset.kind = "to leader end"   -> TruncateAt(f, reset.offset)
           [] Accepts(f, l) /\ reset.kind = "to leader start" -> StartAt(f, reset.offset)
           [] OTHER                                           -> UNCHANGED disk
  /\ FetchAgain(f, l)
  /\ UNCHANGED <<memory, controller, committed, crashes>>

(*
  WHO         the network
  WHAT        loses a response; the follower's request times out and it asks again
  KAFKA       AbstractFetcherThread#processFetchRequest, the catch around leader.fetch
  SIMPLIFIED  a lost request is not told apart from one that the broker refused without effect
*)
LoseResponse(f, l) ==
  /\ Answered(f, l)
  /\ UNCHANGED disk
  /\ FetchAgain(f, l)
  /\ UNCHANGED <<memory, controller, committed, crashes>>

----------------------------------------------------------------------------------
(* Truncation before the first fetch: alone, or by the end of the last epoch at the leader (KIP-101, before truncation on fetch) *)

\* A truncating follower whose fetcher thread waits for no response, and whether it truncates alone.
MayTruncate(f, alone) ==
  /\ up[f]
  /\ role[f] = "truncating"
  /\ leader[f] # NoBroker
  /\ net[f][leader[f]] = Nothing
  /\ TruncatesAlone(LatestEpoch(Cache(f))) = alone

(*
  WHO         a truncating follower with nothing in flight to its leader
  WHAT        truncates at its high watermark and fetches from there.  Until then it takes no response: one to a fetch that it sent
              in an earlier epoch is dropped
  KAFKA       AbstractFetcherThread#doWork, #truncateToHighWatermark; PartitionFetchState#isReadyForFetch
*)
TruncateToHighWatermark(f) ==
  /\ MayTruncate(f, TRUE)
  /\ TruncateAt(f, hw[f])
  /\ role' = [role EXCEPT ![f] = "follower"]
  /\ Send(f, leader[f], RequestOf(epoch[f], log'[f], mark'[f]))
  /\ UNCHANGED <<up, epoch, leader, isr, pending, remoteLeo, controller, committed, crashes>>

(*
  WHO         a truncating follower with nothing in flight to its leader
  WHAT        asks for the end of the last epoch it holds
  KAFKA       AbstractFetcherThread#truncateToEpochEndOffsets, RemoteLeaderEndPoint#fetchEpochEndOffsets
*)
SendEpochRequest(f) ==
  /\ MayTruncate(f, FALSE)
  /\ Send(f, leader[f], Ask(epoch[f], log[f], mark[f], role[f]))
  /\ UNCHANGED <<disk, memory, controller, committed, crashes>>

(*
  WHO         the broker l that the question is addressed to
  WHAT        refuses it, or answers from its epoch cache
  KAFKA       ReplicaManager#lastOffsetForLeaderEpoch, Partition#lastOffsetForLeaderEpoch
*)
HandleEpochRequest(l, f) ==
  /\ net[f][l].type = "epoch request"
  /\ LET m == net[f][l]
         found == EpochEndFound(l, f, m.lastEpoch)
         refused == ~up[l] \/ Refuses(l, f, m.epoch)
     IN  Reply(f, l, IF refused THEN Nothing
                     ELSE [type |-> "epoch end", epoch |-> m.epoch, endEpoch |-> found.epoch, endOffset |-> found.end])
  /\ UNCHANGED <<disk, memory, controller, committed, crashes>>

(*
  WHO         a truncating follower
  WHAT        truncates by the response, and fetches from then on; or asks again when the response named an epoch it does not know
  KAFKA       AbstractFetcherThread#maybeTruncateToEpochEndOffsets, #getOffsetTruncationState
*)
HandleEpochResponse(f, l) ==
  /\ net[f][l].type = "epoch end"
  /\ IF Truncates(f, l) /\ EpochEndMatches(f, net[f][l])
     THEN LET truncated == TruncateAtEpochEnd(f, net[f][l])
              next == IF truncated.completed THEN "follower" ELSE "truncating"
          IN  /\ TruncateAt(f, truncated.offset)
              /\ role' = [role EXCEPT ![f] = next]
              /\ AskAgain(f, l, next)
     ELSE UNCHANGED <<disk, role>> /\ FetchAgain(f, l)
  /\ UNCHANGED <<up, epoch, leader, isr, pending, remoteLeo, controller, committed, crashes>>

----------------------------------------------------------------------------------
(* Any broker: metadata, crash, restart *)

\* There is metadata this broker has not read.
HasNews(b) ==
  /\ up[b]
  /\ \/ controller.epoch > epoch[b]
     \/ controller.epoch = epoch[b] /\ role[b] = "leader" /\ isr[b] # controller.isr

(*
  WHO         the broker that the newest metadata names as leader
  WHAT        a new epoch: marks its log end as the start of the epoch, may forget the followers' log ends, truncates nothing;
              the same epoch: takes over the committed ISR.  Tries to raise the high watermark
  KAFKA       ReplicaManager#applyDelta, Partition#makeLeader, LeaderEpochFileCache#assign, Replica#resetReplicaState
*)
BecomeLeader(b) ==
  /\ HasNews(b)
  /\ b \in controller.live
  /\ controller.leader = b
  /\ LET newEpoch == controller.epoch > epoch[b]
         remote == IF ForgetsFollowers(b) THEN NobodyKnown ELSE remoteLeo[b]
         h == LeaderHw(b, hw[b], Leo(b), remote, controller.isr, {})
     IN  /\ mark' = IF newEpoch THEN [mark EXCEPT ![b] = MarkOfNewLeader(b)] ELSE mark
         /\ remoteLeo' = [remoteLeo EXCEPT ![b] = remote]
         /\ hw' = [hw EXCEPT ![b] = h]
         /\ Expose(log[b], h)
  /\ role' = [role EXCEPT ![b] = "leader"]
  /\ epoch' = [epoch EXCEPT ![b] = controller.epoch]
  /\ leader' = [leader EXCEPT ![b] = b]
  /\ isr' = [isr EXCEPT ![b] = controller.isr]
  /\ pending' = [pending EXCEPT ![b] = {}]
  /\ UNCHANGED <<log, up, net, controller, crashes>>

(*
  WHO         any other broker that reads the newest metadata
  WHAT        follows the leader of the new epoch, if there is one, and fetches from it, unless an old response from that
              broker is still on its way or it truncates alone first.  With truncation on fetch nothing is truncated here
  KAFKA       ReplicaManager#applyDelta, Partition#makeFollower, ReplicaManager#initialFetchOffset
  SIMPLIFIED  a restarted broker reads metadata once it is unfenced.  An empty cache would start at the high watermark
              (AbstractFetcherThread#partitionFetchState); here the cache is empty only when the log is
*)
BecomeFollower(b) ==
  /\ HasNews(b)
  /\ b \in controller.live \/ role[b] # "none"
  /\ controller.leader # b
  /\ epoch' = [epoch EXCEPT ![b] = controller.epoch]
  /\ leader' = [leader EXCEPT ![b] = controller.leader]
  /\ isr' = [isr EXCEPT ![b] = {}]
  /\ pending' = [pending EXCEPT ![b] = {}]
  /\ remoteLeo' = [remoteLeo EXCEPT ![b] = KnownToFollower(b)]
  /\ TruncateOnBecomeFollower(b)
  /\ LET l == controller.leader
         first == IF StartsTruncating(b) THEN "truncating" ELSE "follower"
     IN  /\ role' = [role EXCEPT ![b] = first]
         /\ IF l # NoBroker /\ net[b][l] = Nothing
            THEN Send(b, l, Ask(controller.epoch, log'[b], mark'[b], first))
            ELSE UNCHANGED net
  /\ UNCHANGED <<hw, up, controller, committed, crashes>>

(*
  WHO         a running broker
  WHAT        dies.  The log stays; the high watermark falls back to a checkpointed one; requests it sent, answers it
              waited for and requests it had not read are gone, answers it had sent are not
  KAFKA       ReplicaManager#checkpointHighWatermarks, LogManager#loadLog
  SIMPLIFIED  any value up to the high watermark may have been checkpointed.  `kept` is the log end that survives
*)
Crash(b, checkpoint, kept) ==
  /\ up[b]
  /\ SurvivesCrash(b, kept)
  /\ checkpoint \in LogStartOf(b)..MinOf({hw[b], kept})
  /\ crashes' = crashes + 1
  /\ up' = [up EXCEPT ![b] = FALSE]
  /\ hw' = [hw EXCEPT ![b] = checkpoint]
  /\ log' = [log EXCEPT ![b] = Prefix(@, kept)]
  /\ mark' = [mark EXCEPT ![b] = Undefined]
  /\ role' = [role EXCEPT ![b] = "none"]
  /\ epoch' = [epoch EXCEPT ![b] = Undefined]
  /\ leader' = [leader EXCEPT ![b] = NoBroker]
  /\ isr' = [isr EXCEPT ![b] = {}]
  /\ pending' = [pending EXCEPT ![b] = {}]
  /\ remoteLeo' = [remoteLeo EXCEPT ![b] = NobodyKnown]
  /\ net' = [f \in Broker |-> [l \in Broker |->
               IF f = b \/ (l = b /\ net[f][l].type \in {"request", "epoch request"}) THEN Nothing ELSE net[f][l]]]
  /\ UNCHANGED <<controller, committed>>

(*
  WHO         a broker that is down
  WHAT        starts again, with what is on disk
  KAFKA       BrokerLifecycleManager, ClusterControlManager#registerBroker
  SIMPLIFIED  it registers only after its old session was fenced
*)
Restart(b) ==
  /\ ~up[b]
  /\ b \notin controller.live
  /\ up' = [up EXCEPT ![b] = TRUE]
  /\ UNCHANGED <<disk, role, epoch, leader, isr, pending, remoteLeo, net, controller, committed, crashes>>

----------------------------------------------------------------------------------
(* Controller *)

\* A change of leader, or of "no leader", is a new leader epoch.  KAFKA: PartitionRegistration#merge.
Elected(k, newIsr, live) == [leader |-> k, epoch |-> controller.epoch + 1, isr |-> newIsr, live |-> live]

\* A clean election among `candidates`: any of them that is in the ISR; nobody only when there is none.
MayElect(k, newIsr, candidates) ==
  IF k = NoBroker THEN newIsr \cap candidates = {} ELSE k \in newIsr \cap candidates

(*
  WHO         the controller
  WHAT        loses the session of b: takes it out of the ISR (the last member stays), elects k if b led.  A broker whose
              process runs comes back in the same step
  KAFKA       ReplicationControlManager#handleBrokerFenced, #generateLeaderAndIsrUpdates, PartitionChangeBuilder
*)
FenceBroker(b, k) ==
  /\ b \in controller.live
  /\ b \in controller.isr \/ ~up[b]
  /\ LET live == IF up[b] THEN controller.live ELSE controller.live \ {b}
         newIsr == IF controller.isr = {b} THEN {b} ELSE controller.isr \ {b}
         candidates == IF newIsr = {b} THEN live ELSE live \ {b}
     IN  IF controller.leader = b
         THEN /\ MayElect(k, newIsr, candidates)
              /\ controller' = Elected(k, newIsr, live)
         ELSE /\ k = NoBroker
              /\ controller' = [controller EXCEPT !.isr = newIsr, !.live = live]
  /\ UNCHANGED <<disk, memory, net, committed, crashes>>

(*
  WHO         the controller
  WHAT        unfences a restarted broker; a partition without a leader gets it if it is in the ISR
  KAFKA       ReplicationControlManager#handleBrokerUnfenced
*)
UnfenceBroker(b, k) ==
  /\ b \notin controller.live
  /\ up[b]
  /\ LET live == controller.live \cup {b}
     IN  IF controller.leader = NoBroker /\ b \in controller.isr
         THEN /\ k = b
              /\ controller' = Elected(b, controller.isr, live)
         ELSE /\ k = NoBroker
              /\ controller' = [controller EXCEPT !.live = live]
  /\ UNCHANGED <<disk, memory, net, committed, crashes>>

(*
  WHO         the controller
  WHAT        moves leadership to another member of the ISR, nobody being fenced
  KAFKA       ReplicationControlManager#electLeader, PartitionChangeBuilder (PREFERRED)
  SIMPLIFIED  any live member counts as preferred: reassignment and controlled shutdown move leaders likewise
*)
ElectPreferred(k) ==
  /\ controller.leader # NoBroker
  /\ k # controller.leader
  /\ k \in controller.isr \cap controller.live
  /\ controller' = Elected(k, controller.isr, controller.live)
  /\ UNCHANGED <<disk, memory, net, committed, crashes>>

(*
  WHO         the controller, for a proposal of b
  WHAT        commits it, and b learns it from metadata; or refuses it because a member is fenced, and b falls back to the
              committed ISR (INELIGIBLE_REPLICA).  A proposal of another epoch, or made on another ISR, is never
              considered: b stays pending until it reads metadata
  KAFKA       ReplicationControlManager#alterPartition, #validateAlterPartitionData,
              Partition#handleAlterPartitionError
  SIMPLIFIED  request and answer are one step with it
*)
AlterPartition(b) ==
  /\ pending[b] # {}
  /\ controller.leader = b
  /\ controller.epoch = epoch[b]
  /\ MadeOnThisIsr(b)
  /\ IF AcceptsMembers(b)
     THEN controller' = [controller EXCEPT !.isr = pending[b]] /\ UNCHANGED pending
     ELSE pending' = [pending EXCEPT ![b] = {}] /\ UNCHANGED controller
  /\ UNCHANGED <<disk, up, role, epoch, leader, isr, remoteLeo, net, committed, crashes>>

----------------------------------------------------------------------------------

Next ==
  \/ \E l \in Broker : LeaderAppend(l)
  \/ \E l, f \in Broker, expand \in BOOLEAN : HandleFetch(l, f, expand)
  \/ \E l \in Broker, removed \in SUBSET Broker : ShrinkIsr(l, removed)
  \/ \E f \in Broker : SendFetch(f)
  \/ \E f, l \in Broker : HandleFetchResponse(f, l)
  \/ \E f, l \in Broker : HandleDivergingResponse(f, l)
  \/ \E f, l \in Broker : HandleOutOfRange(f, l)
  \/ \E f, l \in Broker : LoseResponse(f, l)
  \/ \E f \in Broker : TruncateToHighWatermark(f)
  \/ \E f \in Broker : SendEpochRequest(f)
  \/ \E l, f \in Broker : HandleEpochRequest(l, f)
  \/ \E f, l \in Broker : HandleEpochResponse(f, l)
  \/ \E b \in Broker : BecomeLeader(b)
  \/ \E b \in Broker : BecomeFollower(b)
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b] : Crash(b, checkpoint, Leo(b))
  \/ \E b \in Broker : Restart(b)
  \/ \E b \in Broker, k \in BrokerOrNone : FenceBroker(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : UnfenceBroker(b, k)
  \/ \E k \in Broker : ElectPreferred(k)
  \/ \E b \in Broker : AlterPartition(b)

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------------
(* Safety *)

IsCurrentLeader(b) == role[b] = "leader" /\ epoch[b] = controller.epoch

\* A high watermark never points outside the log it belongs to.
HwWithinLog == \A b \in Broker : hw[b] \in LogStartOf(b)..Leo(b)

\* Two replicas hold the same records below the lower of their high watermarks.
LogMatchingBelowHw ==
  \A a, b \in Broker : LET n == MinOf({hw[a], hw[b]}) IN IsPrefix(Prefix(log[a], n), log[b])

\* The leader of the current epoch holds everything that was ever committed.
LeaderCompleteness == \A b \in Broker : IsCurrentLeader(b) => IsPrefix(committed, log[b])

\* So does everybody who could be elected next: the controller's ISR.
IsrCompleteness == \A b \in controller.isr : IsPrefix(committed, log[b])

\* What any replica shows below its high watermark is committed: no exposure above the true high watermark.
NoFalseExposure == \A b \in Broker : IsPrefix(Prefix(log[b], hw[b]), committed)

\* The controller's ISR never holds a member that the current leader does not count (KIP-497).
IsrSuperset ==
  \A b \in Broker : IsCurrentLeader(b) => controller.isr \subseteq MaximalIsr(isr[b], pending[b])

\* Epochs never fall along a log, and an entry without records is newer than all of them: the epoch cache is strictly
\* increasing in epochs and starts.
EpochsMonotone ==
  \A b \in Broker :
    LET cache == Cache(b)
    IN  \A i \in 1..(Len(cache) - 1) : cache[i].epoch < cache[i + 1].epoch /\ cache[i].start < cache[i + 1].start

\* The same record (epoch and offset) in two logs has the same records before it: an epoch has one writer.
SameRecordSamePrefix ==
  \A a, b \in Broker : \A n \in 1..MinOf({Leo(a), Leo(b)}) :
    log[a][n] = log[b][n] => IsPrefix(Prefix(log[a], n), log[b])

\* An epoch in two caches has one start, and the logs agree below it.  Said of entries, not of records: an entry that has no
\* record yet has a past, too.  A premise of the proofs that truncation ends at the common prefix (spec/proofs).
OnePastPerEntry ==
  \A a, b \in Broker :
    LET left == Cache(a)
        right == Cache(b)
    IN  \A i \in 1..Len(left), j \in 1..Len(right) :
          left[i].epoch = right[j].epoch =>
            /\ left[i].start = right[j].start
            /\ Prefix(log[a], left[i].start) = Prefix(log[b], left[i].start)

\* The other premise about two logs: a follower has no epoch in its cache that is later than its leader's latest.
LeaderIsNewest ==
  \A f, l \in Broker :
    LET left == Cache(l)
        right == Cache(f)
    IN  (Follows(f, l) /\ up[l] /\ role[l] = "leader" /\ epoch[f] = epoch[l] /\ right # <<>>) =>
          (left # <<>> /\ right[Len(right)].epoch <= left[Len(left)].epoch)

\* A committed record stays committed, at its offset.
CommittedStable == [][IsPrefix(committed, committed')]_vars

\* No leader that becomes leader again has missed an epoch of somebody else in between.
NoEpochMissed ==
  [][\A b \in Broker : role[b] = "leader" /\ role'[b] = "leader" => epoch'[b] <= epoch[b] + 1]_vars

\* Checked by TLC within bounds (table below); the rules they rest on are proved with z3 (spec/proofs).
THEOREM TypesHold          == Spec => []TypeOK
THEOREM HwIsWithinLog      == Spec => []HwWithinLog
THEOREM IsrIsSuperset      == Spec => []IsrSuperset
THEOREM CachesAreMonotone  == Spec => []EpochsMonotone
THEOREM RecordsFixPrefixes == Spec => []SameRecordSamePrefix

\* With three brokers Kafka as it is needs the premise: MCReplication/MissedEpoch.cfg shows a run without it.
THEOREM LogsMatchBelowHw   == Spec /\ NoEpochMissed => []LogMatchingBelowHw
THEOREM LeadersAreComplete == Spec /\ NoEpochMissed => []LeaderCompleteness
THEOREM IsrIsComplete      == Spec /\ NoEpochMissed => []IsrCompleteness
THEOREM ExposureIsTrue     == Spec /\ NoEpochMissed => []NoFalseExposure
THEOREM CommittedIsStable  == Spec /\ NoEpochMissed => CommittedStable
==================================================================================
Checked with TLC 2.15, one worker; models.toml has the numbers that tests hold it to:

  brokers  MaxLog  last epoch  crashes   distinct states   depth
        2       2           1        1            22,393      29    Small
        2       1           3        0            74,999      30    Epochs
        2       2           2        1           183,907      34    Medium
        3       1           1        0           459,591      32    Three
        3       1           2        0    a failure after 13 states    MissedEpochFromInit
        3       1           2        0           778,029      34    RepairedNoProposals: F2 repaired, no ISR proposals,
                                                                    states that differ in two names counted once

MCReplication.tla names the decisions whose removal was tried.  All but three are needed: each removal breaks a property
within small bounds.  These three held within the bounds of their models and are no more than idle there: the offset of an
response, where its epoch is checked and no response comes twice (OffsetUnchecked: 2 brokers, MaxLog 1, last epoch 2, no crash;
MCDuplicates.tla has responses that do, and there it is needed); forgetting log ends at election, where followers forget them
(NeverForgets, same bounds; MCReplication!OnlyLeadersKnow says why nothing is left to forget); the ISR a proposal was made on,
as long as the proposal is the request (AnyIsr, same bounds; AlterPartition.tla has the messages, and there the comparison is
needed).
