--------------------------- MODULE MCAlterPartition -----------------------------
(***********************************************************************************
 `AlterPartition` with bounds, the repair of a decision, and decisions taken away; and the
 report of each transition that spec/tlc/graph.py reads.
 ***********************************************************************************)
EXTENDS AlterPartition, TLC

CONSTANTS
  b1, b2, b3,         \* model values: the leader and its followers
  MaxEnd,             \* longest log
  MaxPartitionEpoch,  \* most ISR changes
  MaxRestarts         \* how often a broker may come back empty

Order == <<b1, b2, b3>>
Count == Cardinality(Replica)

ASSUME ReplicasInOrder == Replica = {Order[i] : i \in 1..Count} /\ Leader = b1

----------------------------------------------------------------------------------
(* A state and a label as nested tuples of small numbers, as in MCReplication: replicas are their position in Order from 0,
   the leader's 0; sets of them are bit masks; -1 is "none" *)

Index(b) == (CHOOSE i \in 1..Count : Order[i] = b) - 1
Mask(S) ==
  LET bit(i) == IF i <= Count /\ Order[i] \in S THEN 2 ^ (i - 1) ELSE 0
  IN  bit(1) + bit(2) + bit(3)
Number(boolean) == IF boolean THEN 1 ELSE 0
PerFollower(value(_)) == [i \in 1..Count - 1 |-> value(Order[i + 1])]

PartitionView(partition) == <<Mask(partition.isr), partition.partitionEpoch>>

ChannelView ==
  LET m == channel
      asked(f) == IF f \in m.isr THEN m.incarnation[f] ELSE -1
  IN  CASE m.type = "nothing" -> <<>>
        [] m.type = "request" -> <<1, Mask(m.isr), m.partitionEpoch, PerFollower(asked)>>
        [] m.type = "response"  -> <<2, Mask(m.isr), m.partitionEpoch, Mask(m.asked)>>
        [] m.type = "refusal" -> <<3, Mask(m.asked)>>

LeaderView ==
  LET knownEnd(f) == known[f].end
      knownIncarnation(f) == known[f].incarnation
  IN  <<end[Leader], hw, PartitionView(view), Mask(pending), PerFollower(knownEnd), PerFollower(knownIncarnation)>>

View ==
  LET logEnd(f) == end[f]
      brokerEpoch(f) == incarnation[f]
  IN  <<LeaderView, PerFollower(logEnd), PerFollower(brokerEpoch), ChannelView, PartitionView(controller),
        [i \in 1..Len(images) |-> PartitionView(images[i])], committed, restarts, Mask(recent)>>

\* Replaced by PrintTarget, in a .cfg, when the graph is asked for: MCReplication says why a state is printed once.
ReportStep(label) == TRUE

PrintSource == PrintT(ToString(<<"from", View>>)) /\ FALSE
PrintTarget(label) == PrintT(ToString(<<"step", label, "to", View'>>))

----------------------------------------------------------------------------------
(* Bounds *)

\* Replaced where everything happens within the lag limit.
TimePasses == TRUE
Never == FALSE

\* The lag limit, put in for Remembers.
Everybody(followers) == followers

\* What perturbs is bounded, what ends a change is not.
MayChange == controller.partitionEpoch < MaxPartitionEpoch

MCLeaderAppend == LeaderAppend /\ end'[Leader] <= MaxEnd /\ ReportStep(<<"LeaderAppend">>)
MCHandleFetch(f, expand, responseLost) ==
  /\ HandleFetch(f, expand, responseLost)
  /\ expand => MayChange
  /\ ReportStep(<<"HandleFetch", Index(f), Number(expand), Number(responseLost)>>)
MCShrinkIsr(removed) == ShrinkIsr(removed) /\ MayChange /\ ReportStep(<<"ShrinkIsr", Mask(removed)>>)
MCHandleAlterPartition(responseLost) ==
  HandleAlterPartition(responseLost) /\ ReportStep(<<"HandleAlterPartition", Number(responseLost)>>)
MCHandleAlterPartitionResponse == HandleAlterPartitionResponse /\ ReportStep(<<"HandleAlterPartitionResponse">>)
MCReadMetadata(n) == ReadMetadata(n) /\ ReportStep(<<"ReadMetadata", n>>)
MCFenceBroker(f) == FenceBroker(f) /\ MayChange /\ ReportStep(<<"FenceBroker", Index(f)>>)
MCRestartEmpty(f) == RestartEmpty(f) /\ restarts' <= MaxRestarts /\ ReportStep(<<"RestartEmpty", Index(f)>>)
MCLagLimitPasses(f) == TimePasses /\ LagLimitPasses(f) /\ ReportStep(<<"LagLimitPasses", Index(f)>>)

MCNext ==
  \/ MCLeaderAppend
  \/ \E f \in Follower, expand, responseLost \in BOOLEAN : MCHandleFetch(f, expand, responseLost)
  \/ \E removed \in SUBSET Follower : MCShrinkIsr(removed)
  \/ \E responseLost \in BOOLEAN : MCHandleAlterPartition(responseLost)
  \/ MCHandleAlterPartitionResponse
  \/ \E n \in 1..(MaxPartitionEpoch + MaxRestarts + 1) : MCReadMetadata(n)
  \/ \E f \in Follower : MCFenceBroker(f)
  \/ \E f \in Follower : MCRestartEmpty(f)
  \/ \E f \in Follower : MCLagLimitPasses(f)

MCSpec == Init /\ [][MCNext]_vars

\* Metadata is read and answers arrive in the end; then no proposal stays open.
MCFairSpec ==
  /\ MCSpec
  /\ WF_vars(\E n \in 1..(MaxPartitionEpoch + MaxRestarts + 1) : MCReadMetadata(n))
  /\ SF_vars(MCHandleAlterPartition(FALSE))
  /\ WF_vars(MCHandleAlterPartitionResponse)

ProposalsEnd == pending # {} ~> pending = {}

\* The repair: metadata that repeats what the leader knows is skipped.
ReadsNewerImage(image) == image.partitionEpoch > view.partitionEpoch

\* Guards taken away.
CommittedIsr(isr, proposed) == isr
AnyVersion(request) == TRUE
AnyIncarnation(request) == TRUE
AnyResponse(response) == TRUE
OlderImageToo(image) == image.partitionEpoch # view.partitionEpoch

\* Why AnyResponse is idle: metadata that is newer than a response takes away the proposal that it answers, and another one is
\* made only when no response is on its way.
NoResponseIsOld ==
  channel.type = "response" /\ pending = channel.asked => channel.partitionEpoch >= view.partitionEpoch

\* Reachability, expected to fail.
ResponseAlwaysFirst == \A i \in 1..Len(images) : images[i].partitionEpoch > view.partitionEpoch
NothingIsRefused == channel.type # "refusal"
NothingIsStale == channel.type = "request" => IsCurrent(channel)
==================================================================================
