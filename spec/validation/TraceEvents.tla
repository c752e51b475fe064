------------------------------- MODULE TraceEvents -------------------------------
(***********************************************************************************
 Traces of schema v1 against `Replication`, many in one run of TLC.  TraceReplication
 asks which steps a trace names; here a trace is what the nodes told, and each step of
 the spec tells some events, or none.

 The constant operators of TraceTree, which spec/validation/event_validation.py writes, are a tree:
 traces that begin alike share nodes, so what they share is tried once.
   Events                 the different events: [node, event, fields]
   Children[n]            pairs of an event and the node that it leads to from node n
   CutsAtHighWatermark    profile hw-only: a follower tells that it cut

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
  untold        \* untold[n]: what node n has done and not told yet

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
Event(node, name, told) == [node |-> node, event |-> name, fields |-> told]

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

\* The epoch is looked at before the role, where the profile looks at it; a broker without metadata has none.
\* KAFKA: Partition#getLocalLog.
Refusal(l, requested) ==
  IF      role[l] = "none" \/ ~RefusesEpoch(requested, epoch[l]) THEN NotLeaderOrFollower
  ELSE IF CheckLeaderEpoch(requested, epoch[l]) = "fenced"       THEN FencedLeaderEpoch
  ELSE                                                               UnknownLeaderEpoch

AppendTold(l) ==
  <<Event(Index(l), "LeaderAppend",
          [leader_epoch |-> epoch[l], rec_base |-> Leo(l), rec_end |-> Len(log'[l]), rec_epoch |-> epoch[l]] @@ LogOf(l))>>

FetchTold(l, f, expand) ==
  LET m == net[f][l]
      a == net'[f][l]
      fetch(told) == <<Event(Index(l), "HandleFetch", Point(m, f) @@ Asked(m, f) @@ told @@ LogOf(l))>>
      join == <<Event(Index(l), "ExpandIsr",
                      [peer |-> Index(f), isr |-> Mask(pending'[l]), remote_leo |-> remoteLeo'[l][f]])>>
  IN  IF ~up[l] THEN <<>>
      ELSE CASE a.type = "data" ->
                  (IF expand THEN join ELSE <<>>)
                    \o fetch(Error(NoError) @@ [res_hw |-> a.hw, remote_leo |-> remoteLeo'[l][f]] @@ Range(a))
             [] a.type = "diverging" -> fetch(Error(NoError) @@ [div_epoch |-> a.divEpoch, div_end |-> a.divEnd])
             [] a.type = "out of range" -> fetch(Error(OffsetOutOfRange))
             [] a.type = "nothing" -> fetch(Error(Refusal(l, m.epoch)))

\* An answer nobody takes is told by nobody; the request that follows is.
TakenTold(f, l, name, told) ==
  (IF Accepts(f, l) THEN <<Event(Index(f), name, Point(net[f][l], l) @@ told @@ LogOf(f))>> ELSE <<>>) \o Sent(f)

DataTold(f, l) ==
  LET m == net[f][l] IN TakenTold(f, l, "HandleFetchResponse", Error(NoError) @@ [res_hw |-> m.hw] @@ Range(m))

DivergingTold(f, l) ==
  LET m == net[f][l]
      cut == TruncationTarget(Cache(f), Leo(f), m.offset, m.divEpoch, m.divEnd)
  IN  TakenTold(f, l, "HandleDivergingResponse",
                [div_epoch |-> m.divEpoch, div_end |-> m.divEnd, target |-> Len(log'[f]),
                 completed |-> Number(cut.completed)])

OutOfRangeTold(f, l) ==
  LET m == net[f][l]
  IN  TakenTold(f, l, "HandleOutOfRange",
                [leader_start |-> m.leaderStart, leader_end |-> m.leaderEnd, target |-> Len(log'[f])])

EpochRequestTold(l, f) ==
  LET m == net[f][l]
      a == net'[f][l]
      answer == IF a.type = "nothing" THEN Error(Refusal(l, m.epoch))
                ELSE Error(NoError) @@ [div_epoch |-> a.endEpoch, div_end |-> a.endOffset]
  IN  IF ~up[l] THEN <<>> ELSE <<Event(Index(l), "HandleEpochRequest", Asked(m, f) @@ answer)>>

EpochEndTold(f, l) ==
  LET m == net[f][l]
      told == [peer |-> Index(l), req_epoch |-> m.epoch, error |-> NoError, div_epoch |-> m.endEpoch,
               div_end |-> m.endOffset, target |-> Len(log'[f]), completed |-> Number(CutAtEpochEnd(f, m).completed)]
  IN  (IF Truncates(f, l) /\ EpochEndMatches(f, m)
       THEN <<Event(Index(f), "HandleEpochResponse", told @@ LogOf(f))>> ELSE <<>>) \o Sent(f)

ShrinkTold(l) == <<Event(Index(l), "ShrinkIsr", [isr |-> Mask(pending'[l])] @@ LogOf(l))>>

LeaderTold(b) ==
  LET start == Cardinality({i \in 1..Leo(b) : log[b][i] < epoch'[b]})
  IN  <<Event(Index(b), "BecomeLeader",
              [leader_epoch |-> epoch'[b], isr |-> Mask(isr'[b]), epoch_start |-> start] @@ LogOf(b))>>

FollowerTold(b) ==
  LET told == [leader |-> Index(leader'[b]), leader_epoch |-> epoch'[b], leo |-> Leo(b), hw |-> hw[b]]
      cut == <<Event(Index(b), "TruncateToHighWatermark", [target |-> Len(log'[b])] @@ LogOf(b))>>
  IN  <<Event(Index(b), "BecomeFollower", told)>> \o (IF CutsAtHighWatermark THEN cut ELSE <<>>) \o Sent(b)

CrashTold(b) == <<Event(Index(b), "Crash", NoFields)>>

Loaded(b, clean, entries) ==
  Event(Index(b), "Start",
        [clean |-> clean, leo |-> Leo(b), hw |-> hw[b], log_start |-> LogStart, epochs |-> Pairs(entries)])
RestartTold(b) == <<Loaded(b, 0, Cache(b))>>

Registered(c) ==
  Event(Controller, "ChangePartition",
        [leader |-> Index(c.leader), leader_epoch |-> c.epoch, isr |-> Mask(c.isr), live |-> Mask(c.live), clean |-> 1])
ControllerTold == <<Registered(controller')>>

ProposalTold(b) ==
  IF controller' # controller THEN ControllerTold
  ELSE <<Event(Index(b), "HandleAlterPartitionResponse", [isr |-> Mask(pending[b]), error |-> IneligibleReplica])>>

\* What a node tells of the first state.
FirstTold(node) ==
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

Fits(e, told) ==
  /\ e.node = told.node
  /\ e.event = told.event
  /\ \A name \in DOMAIN e.fields \ Unread : name \in DOMAIN told.fields /\ e.fields[name] = told.fields[name]

After(told) == {c[2] : c \in {c \in Children[at] : Fits(Events[c[1]], told)}}

Tells(told) ==
  /\ \A n \in After(told) : PrintT(<<n>>)
  /\ at' \in After(told)

\* A step of `node` tells its first event at once.  The others follow in their order, and before the node does anything else;
\* what other nodes do may be told in between.
Tell(node, told) ==
  IF told = <<>> THEN UNCHANGED <<at, untold>>
  ELSE Tells(Head(told)) /\ untold' = [untold EXCEPT ![node] = Tail(told)]

\* Nobody has a role of an epoch that was not registered.
TellsOn(node) ==
  /\ untold[node] # <<>>
  /\ Head(untold[node]).event \in {"BecomeLeader", "BecomeFollower"} => untold[Controller] = <<>>
  /\ Tells(Head(untold[node]))
  /\ untold' = [untold EXCEPT ![node] = Tail(@)]
  /\ UNCHANGED vars

\* Who has told all it did may act, and what it sent may be read.
Ready(b) == untold[Index(b)] = <<>>

\* Whether node n may tell one of `names` next: asked first, because it is cheap.
May(node, names) == \E c \in Children[at] : Events[c[1]].node = node /\ Events[c[1]].event \in names

LeaderSteps(l) ==
  \/ May(Index(l), {"LeaderAppend"}) /\ LeaderAppend(l) /\ Tell(Index(l), AppendTold(l))
  \/ /\ May(Index(l), {"ShrinkIsr"})
     /\ \E removed \in SUBSET Broker : ShrinkIsr(l, removed)
     /\ Tell(Index(l), ShrinkTold(l))
  \/ \E f \in Broker :
       /\ Ready(f)
       /\ \/ \E expand \in BOOLEAN : HandleFetch(l, f, expand) /\ Tell(Index(l), FetchTold(l, f, expand))
          \/ HandleEpochRequest(l, f) /\ Tell(Index(l), EpochRequestTold(l, f))

FollowerSteps(f) ==
  \/ May(Index(f), {"SendFetch"}) /\ SendFetch(f) /\ Tell(Index(f), Sent(f))
  \/ May(Index(f), {"SendEpochRequest"}) /\ SendEpochRequest(f) /\ Tell(Index(f), Sent(f))
  \/ \E l \in Broker :
       /\ Ready(l)
       /\ \/ HandleFetchResponse(f, l) /\ Tell(Index(f), DataTold(f, l))
          \/ HandleDivergingResponse(f, l) /\ Tell(Index(f), DivergingTold(f, l))
          \/ HandleOutOfRange(f, l) /\ Tell(Index(f), OutOfRangeTold(f, l))
          \/ HandleEpochResponse(f, l) /\ Tell(Index(f), EpochEndTold(f, l))
          \/ LoseResponse(f, l) /\ Tell(Index(f), Sent(f))

BrokerSteps(b) ==
  \/ May(Index(b), {"BecomeLeader"}) /\ BecomeLeader(b) /\ Tell(Index(b), LeaderTold(b))
  \/ May(Index(b), {"BecomeFollower"}) /\ BecomeFollower(b) /\ Tell(Index(b), FollowerTold(b))
  \/ May(Index(b), {"Crash"}) /\ (\E h \in 0..hw[b] : Crash(b, h, Leo(b))) /\ Tell(Index(b), CrashTold(b))
  \/ May(Index(b), {"Start"}) /\ Restart(b) /\ Tell(Index(b), RestartTold(b))
  \/ /\ untold[Controller] = <<>>
     /\ AlterPartition(b)
     /\ Tell(IF controller' # controller THEN Controller ELSE Index(b), ProposalTold(b))

ControllerSteps ==
  /\ May(Controller, {"ChangePartition"})
  /\ \E b \in Broker : \/ \E k \in BrokerOrNone : FenceBroker(b, k) \/ UnfenceBroker(b, k)
                       \/ ElectPreferred(b)
  /\ Tell(Controller, ControllerTold)

TraceInit ==
  /\ Init
  /\ at = 1
  /\ untold = [node \in Nodes |-> FirstTold(node)]

TraceNext ==
  \/ \E node \in Nodes : TellsOn(node)
  \/ \E b \in Broker : Ready(b) /\ (LeaderSteps(b) \/ FollowerSteps(b) \/ BrokerSteps(b))
  \/ untold[Controller] = <<>> /\ ControllerSteps

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, at, untold>>

==================================================================================
