------------------------------- MODULE TraceEvents -------------------------------
(***********************************************************************************
 Traces of schema v1 against `Replication`, many in one run of TLC.  TraceReplication
 asks which steps a trace names; here a trace is what the nodes told, and each step of
 the spec tells some events, or none.

 The constant operators of TraceTree, which validation/trace_validation.py writes, are a tree:
 traces that begin alike share nodes, so what they share is tried once.
   Events                 the different events: [node, event, fields]
   Children[n]            pairs of an event and the node that it leads to from node n
   TruncatesAtHighWatermark    profile hw-only: a new follower tells that it truncated

 A trace is accepted when its last node is reached, so a trace may end in the middle of
 a step.  Fields are named as in docs/traces.md and left open where an event lacks them.
 Brokers are their position in Order from 0, the controller is the number after the
 last, sets of brokers are bit masks, -1 is "none".

 Each node begins by telling the state it starts in (loaded, registered, its role),
 which is no step of the spec; nodes do so independently, and none acts before.
 ***********************************************************************************)
EXTENDS MCReplication, TraceTree

VARIABLES
  at,           \* the node of the tree that this behaviour has reached
  unreported        \* untold[n]: what node n has done and not told yet

Controller == Count
Nodes == 0..Count

\* Kafka's error codes.
NoError == 0
OffsetOutOfRange == 1
NotLeaderOrFollower == 6
FencedLeaderEpoch == 74
UnknownLeaderEpoch == 75
IneligibleReplica == 107

\* Fields of the schema that the spec has no variable for.
Unread == {"partition_epoch", "req_log_start", "req_broker_epoch", "res_log_start", "acks"}

NoFields == [name \in {} |-> 0]
Event(node, name, reported) == [node |-> node, event |-> name, fields |-> reported]

----------------------------------------------------------------------------------
(* What a step tells: read from the state before it and the one after *)

Pairs(entries) == [i \in 1..Len(entries) |-> <<entries[i].epoch, entries[i].start>>]
LogOf(b) == [leo_before |-> Leo(b), hw_before |-> hw[b], leo |-> Len(log'[b]), hw |-> hw'[b], log_start |-> LogStart]
Point(m, b) == [peer |-> Index(b), req_epoch |-> m.epoch, req_offset |-> m.offset]
Asked(m, b) == [peer |-> Index(b), req_epoch |-> m.epoch, req_last_epoch |-> m.lastEpoch]
Error(error) == [error |-> error]
Range(m) ==
  LET n == Len(m.records)
  IN  [rec_base |-> m.offset, rec_end |-> m.offset + n] @@ IF n = 0 THEN NoFields ELSE [rec_epoch |-> m.records[n]]

Asks == {"request", "epoch request"}

\* The request that left in this step, if one did.
Sent(f) ==
  LET to == {l \in Broker : net'[f][l].type \in Asks /\ net[f][l].type \notin Asks}
  IN  IF to = {} THEN <<>>
      ELSE LET l == CHOOSE l \in to : TRUE
               m == net'[f][l]
           IN  <<IF m.type = "request" THEN Event(Index(f), "SendFetch", Point(m, l) @@ Asked(m, l))
                 ELSE Event(Index(f), "SendEpochRequest", Asked(m, l))>>

\* The error of a request that was refused; a broker without metadata has no epoch to look at.
Refusal(l, requested) ==
  LET error == RequestError(requested, epoch[l], FALSE, FencesEpochs /\ role[l] # "none")
  IN  IF      error = "fenced"  THEN FencedLeaderEpoch
      ELSE IF error = "unknown" THEN UnknownLeaderEpoch
      ELSE                           NotLeaderOrFollower

AppendReported(l) ==
  <<Event(Index(l), "LeaderAppend",
          [leader_epoch |-> epoch[l], rec_base |-> Leo(l), rec_end |-> Len(log'[l]), rec_epoch |-> epoch[l]] @@ LogOf(l))>>

FetchReported(l, f, expand) ==
  LET m == net[f][l]
      a == net'[f][l]
      fetch(reported) == <<Event(Index(l), "HandleFetch", Point(m, f) @@ Asked(m, f) @@ reported @@ LogOf(l))>>
      join == <<Event(Index(l), "ExpandIsr",
                      [peer |-> Index(f), isr |-> Mask(pending'[l]), remote_leo |-> remoteLeo'[l][f]])>>
  IN  IF ~up[l] THEN <<>>
      ELSE CASE a.type = "data" ->
                  (IF expand THEN join ELSE <<>>)
                    \o fetch(Error(NoError) @@ [res_hw |-> a.hw, remote_leo |-> remoteLeo'[l][f]] @@ Range(a))
             [] a.type = "diverging" -> fetch(Error(NoError) @@ [div_epoch |-> a.divEpoch, div_end |-> a.divEnd])
             [] a.type = "out of range" -> fetch(Error(OffsetOutOfRange))
             [] a.type = "nothing" -> fetch(Error(Refusal(l, m.epoch)))

\* A response nobody takes is told by nobody; the request that follows is.
TakenReported(f, l, name, reported) ==
  (IF Accepts(f, l) THEN <<Event(Index(f), name, Point(net[f][l], l) @@ reported @@ LogOf(f))>> ELSE <<>>) \o Sent(f)

DataReported(f, l) ==
  LET m == net[f][l] IN TakenReported(f, l, "HandleFetchResponse", Error(NoError) @@ [res_hw |-> m.hw] @@ Range(m))

DivergingReported(f, l) ==
  LET m == net[f][l]
      truncated == TruncationTarget(Cache(f), Leo(f), m.offset, m.divEpoch, m.divEnd)
  IN  TakenReported(f, l, "HandleDivergingResponse",
                [div_epoch |-> m.divEpoch, div_end |-> m.divEnd, target |-> Len(log'[f]),
                 completed |-> Number(truncated.completed)])

OutOfRangeReported(f, l) ==
  LET m == net[f][l]
  IN  TakenReported(f, l, "HandleOutOfRange",
                [leader_start |-> m.leaderStart, leader_end |-> m.leaderEnd, target |-> Len(log'[f])])

EpochRequestReported(l, f) ==
  LET m == net[f][l]
      a == net'[f][l]
      response == IF a.type = "nothing" THEN Error(Refusal(l, m.epoch))
                ELSE Error(NoError) @@ [div_epoch |-> a.endEpoch, div_end |-> a.endOffset]
  IN  IF ~up[l] THEN <<>> ELSE <<Event(Index(l), "HandleEpochRequest", Asked(m, f) @@ response)>>

EpochEndReported(f, l) ==
  LET m == net[f][l]
      reported == [peer |-> Index(l), req_epoch |-> m.epoch, error |-> NoError, div_epoch |-> m.endEpoch,
               div_end |-> m.endOffset, target |-> Len(log'[f]), completed |-> Number(TruncateAtEpochEnd(f, m).completed)]
  IN  (IF Truncates(f, l) /\ EpochEndMatches(f, m)
       THEN <<Event(Index(f), "HandleEpochResponse", reported @@ LogOf(f))>> ELSE <<>>) \o Sent(f)

ShrinkReported(l) == <<Event(Index(l), "ShrinkIsr", [isr |-> Mask(pending'[l])] @@ LogOf(l))>>

LeaderReported(b) ==
  LET start == Cardinality({i \in 1..Leo(b) : log[b][i] < epoch'[b]})
  IN  <<Event(Index(b), "BecomeLeader",
              [leader_epoch |-> epoch'[b], isr |-> Mask(isr'[b]), epoch_start |-> start] @@ LogOf(b))>>

TruncationReported(b) == <<Event(Index(b), "TruncateToHighWatermark", [target |-> Len(log'[b])] @@ LogOf(b))>>

FollowerReported(b) ==
  LET reported == [leader |-> Index(leader'[b]), leader_epoch |-> epoch'[b], leo |-> Leo(b), hw |-> hw[b]]
      truncated == IF TruncatesAtHighWatermark THEN TruncationReported(b) ELSE <<>>
  IN  <<Event(Index(b), "BecomeFollower", reported)>> \o truncated \o Sent(b)

CrashReported(b) == <<Event(Index(b), "Crash", NoFields)>>

Loaded(b, clean, entries) ==
  Event(Index(b), "Start",
        [clean |-> clean, leo |-> Leo(b), hw |-> hw[b], log_start |-> LogStart, epochs |-> Pairs(entries)])
RestartReported(b) == <<Loaded(b, 0, Cache(b))>>

Registered(c) ==
  Event(Controller, "ChangePartition",
        [leader |-> Index(c.leader), leader_epoch |-> c.epoch, isr |-> Mask(c.isr), live |-> Mask(c.live), clean |-> 1])
ControllerReported == <<Registered(controller')>>

ProposalReported(b) ==
  IF controller' # controller THEN ControllerReported
  ELSE <<Event(Index(b), "HandleAlterPartitionResponse", [isr |-> Mask(pending[b]), error |-> IneligibleReplica])>>

\* What a node tells of the first state.
FirstReported(node) ==
  IF node = Controller THEN <<Registered(controller)>>
  ELSE LET b == Order[node + 1]
           base == [leader_epoch |-> epoch[b], leo |-> Leo(b), hw |-> hw[b]]
           leads == base @@ [isr |-> Mask(isr[b]), epoch_start |-> EpochStart(b), hw_before |-> hw[b], leo_before |-> Leo(b)]
       IN  <<Loaded(b, 1, CacheOf(log[b], Undefined))>>
             \o CASE role[b] = "leader" -> <<Event(node, "BecomeLeader", leads)>>
                  [] role[b] = "none" -> <<>>
                  [] OTHER -> <<Event(node, "BecomeFollower", base @@ [leader |-> Index(leader[b])])>>

----------------------------------------------------------------------------------
(* Following the tree *)

Fits(e, reported) ==
  /\ e.node = reported.node
  /\ e.event = reported.event
  /\ \A name \in DOMAIN e.fields \ Unread : name \in DOMAIN reported.fields /\ e.fields[name] = reported.fields[name]

After(reported) == {c[2] : c \in {c \in Children[at] : Fits(Events[c[1]], reported)}}

Reports(reported) ==
  /\ \A n \in After(reported) : PrintT(<<n>>)
  /\ at' \in After(reported)

\* A step of `node` tells its first event at once.  The others follow in their order, and before the node does anything else;
\* what other nodes do may be told in between.
Report(node, reported) ==
  IF reported = <<>> THEN UNCHANGED <<at, unreported>>
  ELSE Reports(Head(reported)) /\ unreported' = [unreported EXCEPT ![node] = Tail(reported)]

\* Nobody has a role of an epoch that was not registered.
ReportsOn(node) ==
  /\ unreported[node] # <<>>
  /\ Head(unreported[node]).event \in {"BecomeLeader", "BecomeFollower"} => unreported[Controller] = <<>>
  /\ Reports(Head(unreported[node]))
  /\ unreported' = [unreported EXCEPT ![node] = Tail(@)]
  /\ UNCHANGED vars

\* Who has told all it did may act, and what it sent may be read.
Ready(b) == unreported[Index(b)] = <<>>

\* Whether node n may tell one of `names` next: asked first, because it is cheap.
May(node, names) == \E c \in Children[at] : Events[c[1]].node = node /\ Events[c[1]].event \in names

LeaderSteps(l) ==
  \/ May(Index(l), {"LeaderAppend"}) /\ LeaderAppend(l) /\ Report(Index(l), AppendReported(l))
  \/ /\ May(Index(l), {"ShrinkIsr"})
     /\ \E removed \in SUBSET Broker : ShrinkIsr(l, removed)
     /\ Report(Index(l), ShrinkReported(l))
  \/ \E f \in Broker :
       /\ Ready(f)
       /\ \/ \E expand \in BOOLEAN : HandleFetch(l, f, expand) /\ Report(Index(l), FetchReported(l, f, expand))
          \/ HandleEpochRequest(l, f) /\ Report(Index(l), EpochRequestReported(l, f))

FollowerSteps(f) ==
  \/ May(Index(f), {"SendFetch"}) /\ SendFetch(f) /\ Report(Index(f), Sent(f))
  \/ /\ May(Index(f), {"TruncateToHighWatermark"})
     /\ TruncateToHighWatermark(f)
     /\ Report(Index(f), TruncationReported(f) \o Sent(f))
  \/ May(Index(f), {"SendEpochRequest"}) /\ SendEpochRequest(f) /\ Report(Index(f), Sent(f))
  \/ \E l \in Broker :
       /\ Ready(l)
       /\ \/ HandleFetchResponse(f, l) /\ Report(Index(f), DataReported(f, l))
          \/ HandleDivergingResponse(f, l) /\ Report(Index(f), DivergingReported(f, l))
          \/ HandleOutOfRange(f, l) /\ Report(Index(f), OutOfRangeReported(f, l))
          \/ HandleEpochResponse(f, l) /\ Report(Index(f), EpochEndReported(f, l))
          \/ LoseResponse(f, l) /\ Report(Index(f), Sent(f))

BrokerSteps(b) ==
  \/ May(Index(b), {"BecomeLeader"}) /\ BecomeLeader(b) /\ Report(Index(b), LeaderReported(b))
  \/ May(Index(b), {"BecomeFollower"}) /\ BecomeFollower(b) /\ Report(Index(b), FollowerReported(b))
  \/ May(Index(b), {"Crash"}) /\ (\E h \in 0..hw[b] : Crash(b, h, Leo(b))) /\ Report(Index(b), CrashReported(b))
  \/ May(Index(b), {"Start"}) /\ Restart(b) /\ Report(Index(b), RestartReported(b))
  \/ /\ unreported[Controller] = <<>>
     /\ AlterPartition(b)
     /\ Report(IF controller' # controller THEN Controller ELSE Index(b), ProposalReported(b))

ControllerSteps ==
  /\ May(Controller, {"ChangePartition"})
  /\ \E b \in Broker : \/ \E k \in BrokerOrNone : FenceBroker(b, k) \/ UnfenceBroker(b, k)
                       \/ ElectPreferred(b)
  /\ Report(Controller, ControllerReported)

TraceInit ==
  /\ Init
  /\ at = 1
  /\ unreported = [node \in Nodes |-> FirstReported(node)]

TraceNext ==
  \/ \E node \in Nodes : ReportsOn(node)
  \/ \E b \in Broker : Ready(b) /\ (LeaderSteps(b) \/ FollowerSteps(b) \/ BrokerSteps(b))
  \/ unreported[Controller] = <<>> /\ ControllerSteps

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, at, unreported>>

==================================================================================
