---------------------------- MODULE TraceReplication -----------------------------
(***********************************************************************************
 Many traces against `Replication` in one run of TLC.  The traces are the constant
 operator `Traces` of a module that validation/trace_validation.py writes: TLC 2.15 reads no
 JSON.  A trace is accepted when the steps it names can be taken one after the other
 from Init and show what was observed; what a trace does not tell is left open.

   observation field   a broker's step            a controller's step
   action              name of the operator       the same
   node                the acting broker          None
   peer                the other broker           the broker it is about
   leo, hw             of node, after the step    Unknown
   epoch, leader       of node, after the step    of the partition, after the step
   role                of node, after the step    Unknown

 Brokers are their position in Order from 0.
 ***********************************************************************************)
EXTENDS MCReplication, Traces

VARIABLES
  trace,        \* which trace this behaviour tries to be
  position      \* how many of its observations are matched

None == -1
Unknown == -2

\* The brokers that an observed number may stand for.
Among(number) == IF number = Unknown THEN Broker ELSE {b \in Broker : Index(b) = number}

Fits(observed, value) == observed = Unknown \/ observed = value

Named(e) ==
  \E node \in IF e.node = None THEN {NoBroker} ELSE Among(e.node), peer \in Among(e.peer) :
    CASE e.action = "LeaderAppend"            -> LeaderAppend(node)
      [] e.action = "SendFetch"               -> SendFetch(node)
      [] e.action = "HandleFetch"             -> \E expand \in BOOLEAN : HandleFetch(node, peer, expand)
      [] e.action = "HandleFetchResponse"     -> HandleFetchResponse(node, peer)
      [] e.action = "HandleDivergingResponse" -> HandleDivergingResponse(node, peer)
      [] e.action = "HandleOutOfRange"        -> HandleOutOfRange(node, peer)
      [] e.action = "LoseResponse"            -> LoseResponse(node, peer)
      [] e.action = "ShrinkIsr"               -> \E removed \in SUBSET Broker : ShrinkIsr(node, removed)
      [] e.action = "TruncateToHighWatermark" -> TruncateToHighWatermark(node)
      [] e.action = "SendEpochRequest"        -> SendEpochRequest(node)
      [] e.action = "HandleEpochRequest"      -> HandleEpochRequest(node, peer)
      [] e.action = "HandleEpochResponse"     -> HandleEpochResponse(node, peer)
      [] e.action = "BecomeLeader"            -> BecomeLeader(node)
      [] e.action = "BecomeFollower"          -> BecomeFollower(node)
      [] e.action = "Crash"                   -> \E h \in 0..hw[node] : Crash(node, h, Leo(node))
      [] e.action = "Restart"                 -> Restart(node)
      [] e.action = "FenceBroker"             -> \E k \in BrokerOrNone : FenceBroker(peer, k)
      [] e.action = "UnfenceBroker"           -> \E k \in BrokerOrNone : UnfenceBroker(peer, k)
      [] e.action = "ElectPreferred"          -> ElectPreferred(peer)
      [] e.action = "AlterPartition"          -> AlterPartition(peer)

Seen(e) ==
  IF e.node = None
  THEN Fits(e.epoch, controller'.epoch) /\ Fits(e.leader, Index(controller'.leader))
  ELSE \E node \in Among(e.node) :
         /\ Fits(e.leo, Len(log'[node]))
         /\ Fits(e.hw, hw'[node])
         /\ Fits(e.epoch, epoch'[node])
         /\ Fits(e.leader, Index(leader'[node]))
         /\ Fits(e.role, RoleNumber[role'[node]])

TraceInit ==
  /\ Init
  /\ trace \in 1..Len(Traces)
  /\ position = 0

TraceNext ==
  /\ position < Len(Traces[trace])
  /\ LET e == Traces[trace][position + 1] IN Named(e) /\ Seen(e)
  /\ position' = position + 1
  /\ UNCHANGED trace
  /\ PrintT(ToString(<<trace, position'>>))

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace, position>>

==================================================================================
