---------------------------- MODULE LogStartMovement -----------------------------
(***********************************************************************************
 `Replication` with log starts that move: DeleteRecords and retention take records away
 from the front, followers hear of it with their fetches, and one that stayed behind is
 out of range and starts again at the leader's start.

 What is modelled
   * A record that was deleted leaves Undefined in its place, so offsets stay positions
     and the log start is the number of such places.  Nothing reads what was there.
   * DeleteRecords and retention are one action, of any replica, up to its high
     watermark.
   * The epoch cache starts at the log start; when everything is deleted its last epoch
     stays, at the log end.

 What is left out: the checkpoint of the log start (a restart keeps it); segments, so a
 log start may be anywhere; tiered storage; ListOffsets asked apart from the fetch.

 Sources: KIP-107, KAFKA-12996; apache/kafka UnifiedLog#maybeIncrementLogStartOffset,
 #truncateFullyAndStartAt, LeaderEpochFileCache#truncateFromStart,
 AbstractFetcherThread#fetchOffsetAndTruncate, Partition#deleteRecordsOnLeader.
 ***********************************************************************************)
EXTENDS Replication

VARIABLE deleted        \* bookkeeping: the highest log start that anybody was told to move to

moveVars == <<vars, deleted>>

----------------------------------------------------------------------------------
(* What a log tells; put in for the operators of `Replication` by name in a .cfg *)

\* For LogStartOf.
StartOf(b) == Cardinality({i \in 1..Leo(b) : log[b][i] = Undefined})

Deleted(records, n) == [i \in 1..Len(records) |-> IF i <= n THEN Undefined ELSE records[i]]

\* For MoveLogStart.
MovesLogStart(b, records, trailing, start) ==
  LET latest == LatestEpoch(CacheOf(records, trailing))
  IN  /\ log' = [log EXCEPT ![b] = Deleted(records, start)]
      /\ mark' = [mark EXCEPT ![b] = IF start < Len(records) THEN trailing ELSE latest]

\* For IsPrefix: where both logs have the record, it is the same ...
IsPrefixWhereKept(s, t) ==
  /\ Len(s) <= Len(t)
  /\ \A i \in 1..Len(s) : s[i] = t[i] \/ s[i] = Undefined \/ t[i] = Undefined

\* ... and no more is promised of records that were deleted somewhere: a follower that has another record there finds no
\* epoch to compare, and may be in sync with it (MCLogStartMovement/DeletedDiffers.cfg).
IsPrefixAbove(s, t) ==
  /\ Len(s) <= Len(t)
  /\ \A i \in (deleted + 1)..Len(s) : s[i] = t[i] \/ s[i] = Undefined \/ t[i] = Undefined

\* For Expose: what was exposed before it was deleted is remembered.
ExposeKept(records, h) ==
  LET remembered(i) == records[i] = Undefined /\ i <= Len(committed)
  IN  committed' = IF h > Len(committed) THEN [i \in 1..h |-> IF remembered(i) THEN committed[i] ELSE records[i]]
                   ELSE committed

----------------------------------------------------------------------------------

\* How far a log start may move.  KAFKA: OffsetOutOfRangeException of UnifiedLog#maybeIncrementLogStartOffset.
DeletionLimit(b) == hw[b]

(*
  WHO         a leader that is asked to, or any replica by its retention
  WHAT        deletes what is before offset n, not above its high watermark
  KAFKA       Partition#deleteRecordsOnLeader, UnifiedLog#deleteOldSegments
  SIMPLIFIED  DeleteRecords waits for the followers' log starts before it is answered; nothing depends on that here
*)
DeleteRecords(b, n) ==
  /\ up[b]
  /\ n > LogStartOf(b)
  /\ n <= DeletionLimit(b)
  /\ MoveLogStart(b, log[b], mark[b], n)
  /\ deleted' = MaxOf({deleted, n})
  /\ UNCHANGED <<hw, memory, net, controller, committed, crashes>>

MoveInit == Init /\ deleted = 0

MoveNext ==
  \/ Next /\ UNCHANGED deleted
  \/ \E b \in Broker : \E n \in 1..Leo(b) : DeleteRecords(b, n)

MoveSpec == MoveInit /\ [][MoveNext]_moveVars

----------------------------------------------------------------------------------
(* Safety: that of `Replication` where records are kept, and two of its own *)

MoveTypeOK ==
  /\ log \in [Broker -> Seq(EpochOrNone)]
  /\ hw \in [Broker -> Nat]
  /\ mark \in [Broker -> EpochOrNone]
  /\ committed \in Seq(Epoch)
  /\ deleted \in Nat

\* A log lacks only deleted records at its front.
OnlyDeletedIsGone == \A b \in Broker : LogStartOf(b) <= deleted

\* No hole: what is missing is at the front.
NoHole == \A b \in Broker : \A i \in 1..Leo(b) : log[b][i] = Undefined => i <= LogStartOf(b)

\* Checked by TLC within bounds (MCLogStartMovement*.cfg); not proved.
THEOREM FrontsAreDeleted == MoveSpec => []OnlyDeletedIsGone
THEOREM LogsHaveNoHole   == MoveSpec => []NoHole
==================================================================================
