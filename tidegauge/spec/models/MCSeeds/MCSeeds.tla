--------------------------------- MODULE MCSeeds ---------------------------------
(***********************************************************************************
 The deep states that models of MCReplication start from are reached from Init: for each,
 the steps, in the labels of the graph.  TLC takes a step only if it is the next one
 written here, so a run has one behaviour, and "this state never comes" has to fail after
 exactly these steps.

 Brokers are their position in Order from 0, -1 is "no leader"; the labels are those of
 MCReplication.
 ***********************************************************************************)
EXTENDS MCReplication

\* Replaced by one of those below.
Script == <<>>

\* Put in for ReportStep.
IsNext(label) == LET n == TLCGet("level") IN n <= Len(Script) /\ Script[n] = label

\* A follower f fetches from l what it has not asked for yet, and takes the response.
First(f, l) == <<<<"SendFetch", f>>, <<"HandleFetch", l, f, 0>>, <<"HandleFetchResponse", f, l>>>>
Again(f, l) == <<<<"HandleFetch", l, f, 0>>, <<"HandleFetchResponse", f, l>>>>

MissedEpochScript ==
  <<<<"LeaderAppend", 0>>>>
  \o First(1, 0) \o
  <<<<"HandleFetch", 0, 1, 0>>,             \* b1 has recorded: b2 at 1
    <<"SendFetch", 2>>,
    <<"HandleFetch", 0, 2, 0>>,             \* b3 at 0; the record is on its way to b3
    <<"ElectPreferred", 2>>,
    <<"BecomeFollower", 1>>,
    <<"HandleFetch", 2, 1, 0>>,             \* b3 has not read that it leads, and refuses
    <<"BecomeLeader", 2>>,
    <<"HandleFetchResponse", 2, 0>>,        \* b3 leads now: it drops the record
    <<"FenceBroker", 2, 0>>>>

\* On a network that keeps what is in flight.
OldRequestScript ==
  <<<<"LeaderAppend", 0>>>>
  \o First(1, 0) \o                         \* b2 has asked from behind the record
  <<<<"SendFetch", 2>>,
    <<"HandleFetch", 0, 2, 0>>,
    <<"ElectPreferred", 2>>,
    <<"BecomeFollower", 1>>,                \* another partition keeps the thread, and its request
    <<"HandleFetch", 2, 1, 0>>,
    <<"BecomeLeader", 2>>,
    <<"HandleFetchResponse", 2, 0>>,
    <<"FenceBroker", 2, 0>>>>

StaleLeaderScript ==
  <<<<"FenceBroker", 2, -1>>, <<"BecomeLeader", 0>>, <<"LeaderAppend", 0>>>>
  \o First(1, 0) \o Again(1, 0) \o Again(1, 0) \o
  <<<<"LeaderAppend", 0>>,                  \* the second record stays on b1
    <<"ElectPreferred", 1>>,
    <<"BecomeLeader", 1>>,
    <<"BecomeFollower", 2>>>>
  \o Again(2, 1) \o
  <<<<"HandleFetch", 1, 2, 1>>,             \* b2 proposes b3
    <<"AlterPartition", 1>>,
    <<"ElectPreferred", 2>>,
    <<"BecomeFollower", 1>>,
    <<"HandleFetch", 2, 1, 0>>,             \* refused as above
    <<"BecomeLeader", 2>>,
    <<"HandleFetchResponse", 2, 1>>,
    <<"ElectPreferred", 0>>>>

LaggingHwScript ==
  <<<<"FenceBroker", 2, -1>>, <<"BecomeLeader", 0>>, <<"LeaderAppend", 0>>>>
  \o First(1, 0) \o First(2, 0) \o Again(2, 0) \o
  <<<<"LeaderAppend", 0>>>>
  \o Again(1, 0) \o Again(1, 0) \o
  <<<<"ElectPreferred", 1>>>>

InterleavedScript ==
  <<<<"LeaderAppend", 0>>>>
  \o First(1, 0) \o
  <<<<"FenceBroker", 1, -1>>,               \* b1 is alone in the ISR,
    <<"FenceBroker", 0, 0>>,                \* so that it leads epoch 1 as well
    <<"BecomeLeader", 0>>,
    <<"BecomeFollower", 1>>,
    <<"HandleFetch", 0, 1, 0>>,             \* of epoch 0: refused
    <<"SendFetch", 1>>,
    <<"HandleFetch", 0, 1, 1>>,
    <<"HandleFetchResponse", 1, 0>>,
    <<"AlterPartition", 0>>,
    <<"BecomeLeader", 0>>,                  \* hears that both are in sync
    <<"LeaderAppend", 0>>,
    <<"ElectPreferred", 1>>,
    <<"BecomeFollower", 0>>,
    <<"HandleFetch", 1, 0, 0>>,             \* b2 has not read that it leads, and refuses
    <<"HandleFetch", 0, 1, 0>>,             \* nor does b1 lead
    <<"BecomeLeader", 1>>,
    <<"LeaderAppend", 1>>,
    <<"ElectPreferred", 0>>,
    <<"BecomeLeader", 0>>,
    <<"LeaderAppend", 0>>,
    <<"ElectPreferred", 1>>,
    <<"BecomeLeader", 1>>>>

LateDivergingScript ==
  <<<<"LeaderAppend", 0>>,
    <<"ElectPreferred", 1>>,
    <<"BecomeLeader", 1>>,
    <<"BecomeFollower", 0>>,
    <<"HandleFetch", 1, 0, 0>>,             \* diverging: the late response
    <<"ElectPreferred", 0>>,
    <<"BecomeLeader", 0>>,
    <<"BecomeFollower", 1>>,
    <<"HandleFetch", 0, 1, 0>>,             \* b2 has an entry for epoch 1, and nothing else
    <<"HandleDivergingResponse", 1, 0>>>>
  \o Again(1, 0) \o
  <<<<"HandleFetch", 0, 1, 0>>>>            \* the record is committed

\* Expected to fail.
MissedEpochNeverComes == ~MissedEpochInit
OldRequestNeverComes == ~OldRequestInit
StaleLeaderNeverComes == ~StaleLeaderInit
LaggingHwNeverComes == ~LaggingHwInit
InterleavedNeverComes == ~InterleavedInit
LateDivergingNeverComes == ~LateDivergingInit
==================================================================================
