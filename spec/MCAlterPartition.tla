--------------------------- MODULE MCAlterPartition -----------------------------
(***********************************************************************************
 `AlterPartition` with bounds, the repair of a decision, and decisions taken away.
 ***********************************************************************************)
EXTENDS AlterPartition

CONSTANTS
  b1, b2, b3,         \* model values: the leader and its followers
  MaxEnd,             \* longest log
  MaxPartitionEpoch,  \* most ISR changes
  MaxRestarts         \* how often a broker may come back empty

ASSUME b1 = Leader

\* Replaced where everything happens within the lag limit.
TimePasses == TRUE
Never == FALSE

\* The lag limit, put in for Remembers.
Everybody(followers) == followers

\* What perturbs is bounded, what ends a change is not.
MayChange == controller.partitionEpoch < MaxPartitionEpoch

MCLeaderAppend == LeaderAppend /\ end'[Leader] <= MaxEnd
MCHandleFetch(f, expand, answerLost) == HandleFetch(f, expand, answerLost) /\ (expand => MayChange)
MCShrinkIsr(removed) == ShrinkIsr(removed) /\ MayChange
MCHandleAlterPartition(answerLost) == HandleAlterPartition(answerLost)
MCHandleAlterPartitionResponse == HandleAlterPartitionResponse
MCReadMetadata(n) == ReadMetadata(n)
MCFenceBroker(f) == FenceBroker(f) /\ MayChange
MCRestartEmpty(f) == RestartEmpty(f) /\ restarts' <= MaxRestarts
MCLagLimitPasses(f) == TimePasses /\ LagLimitPasses(f)

MCNext ==
  \/ MCLeaderAppend
  \/ \E f \in Follower, expand, answerLost \in BOOLEAN : MCHandleFetch(f, expand, answerLost)
  \/ \E removed \in SUBSET Follower : MCShrinkIsr(removed)
  \/ \E answerLost \in BOOLEAN : MCHandleAlterPartition(answerLost)
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
AnyAnswer(answer) == TRUE
OlderImageToo(image) == image.partitionEpoch # view.partitionEpoch

\* Reachability, expected to fail.
AnswerAlwaysFirst == \A i \in 1..Len(images) : images[i].partitionEpoch > view.partitionEpoch
NothingIsRefused == channel.type = "answer" => channel.ok
NothingIsStale == channel.type = "request" => IsCurrent(channel)
==================================================================================
