---------------------------------- MODULE Rules ----------------------------------
(***********************************************************************************
 The decisions of the protocol that are arithmetic on offsets and epochs, as pure
 operators: no variable, no message.  `Replication` calls them; a test evaluates each
 of them over small arguments and compares it, row by row, with the Python function of
 the same name in impl/rules.py (names differ in case only).

 Numbers as on Kafka's wire: leader epochs and offsets from 0, log ends and high
 watermarks exclusive, Undefined = -1.

 An epoch cache is a sequence of [epoch, start], both strictly increasing
 (LeaderEpochFileCache): the leader epoch, and the offset of its first record.
 ***********************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

Undefined == -1

MinOf(S) == CHOOSE x \in S : \A y \in S : x <= y
MaxOf(S) == CHOOSE x \in S : \A y \in S : x >= y

----------------------------------------------------------------------------------
(* The leader epoch cache *)

EpochEnd(e, o) == [epoch |-> e, end |-> o]
NoEpochEnd == EpochEnd(Undefined, Undefined)

LatestEpoch(cache) == IF cache = <<>> THEN Undefined ELSE cache[Len(cache)].epoch

\* Where an epoch ends, as a leader answers OffsetsForLeaderEpoch and as a follower looks it up in its own log.
\* KAFKA: LeaderEpochFileCache#endOffsetFor.  Row L4 is KAFKA-7415, the epoch in row L5 is KIP-279.
EndOffsetFor(cache, logEnd, requested) ==
  LET n == Len(cache)
      known == Cardinality({i \in 1..n : cache[i].epoch <= requested})
  IN  IF      requested = Undefined          THEN NoEpochEnd                                        \* L1
      ELSE IF requested = LatestEpoch(cache) THEN EpochEnd(requested, logEnd)                       \* L2
      ELSE IF known = n                      THEN NoEpochEnd                                        \* L3
      ELSE IF known = 0                      THEN EpochEnd(requested, cache[1].start)               \* L4
      ELSE                                        EpochEnd(cache[known].epoch, cache[known + 1].start) \* L5

----------------------------------------------------------------------------------
(* Fetch *)

\* KIP-320: the epoch of a request against the epoch of the replica that is asked.
\* KAFKA: Partition#checkCurrentLeaderEpoch (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH).
CheckLeaderEpoch(requested, local) ==
  IF      requested = Undefined \/ requested = local THEN "none"
  ELSE IF requested < local                          THEN "fenced"
  ELSE                                                    "unknown"

\* Why a request is refused: the epoch is looked at before leadership.  With fences = FALSE the epoch is not looked at.
\* KAFKA: Partition#getLocalLog (NOT_LEADER_OR_FOLLOWER).
RequestError(requested, local, serves, fences) ==
  LET epochError == IF fences THEN CheckLeaderEpoch(requested, local) ELSE "none"
  IN  IF epochError = "none" /\ ~serves THEN "not leader" ELSE epochError

\* What a leader does with a fetch that passed the epoch check.  Out of range is tested before divergence (KAFKA-12996).
\* KAFKA: Partition#fetchRecords, #readRecords.
FetchDecision(cache, logStart, logEnd, offset, lastEpoch) ==
  LET found == EndOffsetFor(cache, logEnd, lastEpoch)
      read == IF offset < logStart \/ offset > logEnd THEN "out of range" ELSE "read"
      response(kind, e) == [kind |-> kind, epoch |-> e.epoch, end |-> e.end]
  IN  IF      lastEpoch = Undefined                             THEN response(read, NoEpochEnd)
      ELSE IF found = NoEpochEnd \/ offset < logStart           THEN response("out of range", NoEpochEnd)
      ELSE IF found.epoch < lastEpoch \/ found.end < offset     THEN response("diverging", found)
      ELSE                                                           response(read, NoEpochEnd)

\* Whether a follower that stands at (entryOffset, entryEpoch) takes the response to a request made at (offset, epoch).
\* The epoch is compared since KAFKA-18991 (3.9.1, 4.0.1), where the request had one; before, only the offset was.
\* KAFKA: AbstractFetcherThread#processFetchRequest.
AcceptsFetchResponse(entryOffset, entryEpoch, offset, epoch) ==
  offset = entryOffset /\ (epoch = Undefined \/ epoch = entryEpoch)

\* The same for an OffsetsForLeaderEpoch response, which has no offset (KAFKA-7786).
\* KAFKA: AbstractFetcherThread#truncateToEpochEndOffsets.
AcceptsEpochResponse(entryEpoch, epoch) == epoch = entryEpoch

----------------------------------------------------------------------------------
(* Truncation on the follower *)

\* Where a follower truncates, given the leader's epoch and end.  Neither log start nor high watermark is an argument: nothing
\* here stops a truncation below the high watermark.
\* KAFKA: AbstractFetcherThread#getOffsetTruncationState.
TruncationTarget(cache, logEnd, offset, leaderEpoch, leaderEnd) ==
  LET own == EndOffsetFor(cache, logEnd, leaderEpoch)
  IN  IF      leaderEnd = Undefined   THEN [row |-> 1, offset |-> offset, completed |-> TRUE]
      ELSE IF leaderEpoch = Undefined THEN [row |-> 2, offset |-> MinOf({leaderEnd, logEnd}), completed |-> TRUE]
      ELSE IF own = NoEpochEnd        THEN [row |-> 3, offset |-> MinOf({leaderEnd, logEnd}), completed |-> TRUE]
      ELSE IF own.epoch # leaderEpoch THEN [row |-> 4, offset |-> MinOf({own.end, logEnd}), completed |-> FALSE]
      ELSE                                 [row |-> 5, offset |-> MinOf({own.end, leaderEnd, logEnd}), completed |-> TRUE]

\* A truncation takes the high watermark with it.  KAFKA: UnifiedLog#truncateTo (since 2.4).
HighWatermarkAfterTruncation(h, target) == MinOf({h, target})

\* KAFKA: AbstractFetcherThread#fetchOffsetAndTruncate.
OutOfRangeReset(leaderStart, leaderEnd, logEnd) ==
  IF      leaderEnd < logEnd   THEN [kind |-> "to leader end", offset |-> leaderEnd]
  ELSE IF leaderStart > logEnd THEN [kind |-> "to leader start", offset |-> leaderStart]
  ELSE                              [kind |-> "to log end", offset |-> logEnd]

----------------------------------------------------------------------------------
(* High watermark and in-sync replicas *)

\* The leader's value clamped into the follower's log.  Not monotonic.  KAFKA: UnifiedLog#updateHighWatermark.
FollowerHighWatermark(leaderHw, logStart, logEnd) ==
  IF leaderHw < logStart THEN logStart ELSE MinOf({leaderHw, logEnd})

\* Up to the lowest log end among those that count, never down.  KAFKA: Partition#maybeIncrementLeaderHW.
LeaderHighWatermark(h, logEnd, leos) == MaxOf({h, MinOf({logEnd} \cup leos)})

\* Whether a leader of newEpoch forgets what it recorded of its followers: not if it led in the last epoch it knows and keeps
\* them, as Kafka does, even if it missed an epoch in between and they have truncated their logs since.
\* KAFKA: Partition#makeLeader, Replica#resetReplicaState.
ForgetsLogEnds(knownEpoch, newEpoch, wasLeader, keeps) == newEpoch > knownEpoch /\ ~(wasLeader /\ keeps)

\* KAFKA: Partition#isFollowerInSync; the second half is KAFKA-7128.
MayJoinIsr(leo, h, epochStart) == leo >= h /\ leo >= epochStart

==================================================================================
