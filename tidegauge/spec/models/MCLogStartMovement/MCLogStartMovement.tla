--------------------------- MODULE MCLogStartMovement ----------------------------
(***********************************************************************************
 `LogStartMovement` with the bounds of MCReplication, guards taken away by name, and
 states that must be reached.
 ***********************************************************************************)
EXTENDS LogStartMovement, MCReplication

CONSTANT MaxStart       \* highest log start

\* For View: a record that was deleted is -1 in its log; `deleted` stands behind the rest, unless it is 0.
MoveView == IF deleted = 0 THEN Parts ELSE Append(Parts, deleted)

MCDeleteRecords(b, n) == n <= MaxStart /\ DeleteRecords(b, n) /\ ReportStep(<<"DeleteRecords", Index(b), n>>)

\* A step is reported when all that it changes is known.
MCMoveNext ==
  \/ UNCHANGED deleted /\ MCNext
  \/ \E b \in Broker : \E n \in 1..MaxLog : MCDeleteRecords(b, n)

MCMoveSpec == MoveInit /\ [][MCMoveNext]_moveVars

\* With unclean election: a follower may have to truncate before its own log start.
MCUncleanMoveSpec ==
  MoveInit /\ [][MCMoveNext \/ (UNCHANGED deleted /\ \E k \in Broker : MCElectUnclean(k))]_moveVars

----------------------------------------------------------------------------------
(* Guards taken away *)

UpToLogEnd(b) == Leo(b)

ClampsToLogEndOnly(leaderHw, logStart, logEnd) == MinOf({leaderHw, logEnd})

StartsWithOldHw(f, start) ==
  /\ log' = [log EXCEPT ![f] = [i \in 1..start |-> Undefined]]
  /\ mark' = [mark EXCEPT ![f] = Undefined]
  /\ UNCHANGED hw

StartsBesideItsLog(f, start) ==
  /\ log' = [log EXCEPT ![f] = @ \o [i \in 1..(start - Len(@)) |-> Undefined]]
  /\ hw' = [hw EXCEPT ![f] = start]
  /\ mark' = [mark EXCEPT ![f] = Undefined]

ResetsToLeaderEnd(leaderStart, leaderEnd, logEnd) ==
  IF leaderEnd < logEnd THEN [kind |-> "to leader end", offset |-> leaderEnd]
  ELSE [kind |-> "to leader start", offset |-> leaderEnd]

\* Divergence is tested before the log start (before KAFKA-12996).
DivergenceFirst(cache, logStart, logEnd, offset, lastEpoch) ==
  LET found == EndOffsetFor(cache, logEnd, lastEpoch)
      read == IF offset < logStart \/ offset > logEnd THEN "out of range" ELSE "read"
      response(kind, e) == [kind |-> kind, epoch |-> e.epoch, end |-> e.end]
  IN  IF      lastEpoch = Undefined                         THEN response(read, NoEpochEnd)
      ELSE IF found = NoEpochEnd                            THEN response("out of range", NoEpochEnd)
      ELSE IF found.epoch < lastEpoch \/ found.end < offset THEN response("diverging", found)
      ELSE                                                       response(read, NoEpochEnd)

----------------------------------------------------------------------------------
(* Reachability, expected to fail *)

ResetOf(f, l) == LET m == net[f][l] IN OutOfRangeReset(m.leaderStart, m.leaderEnd, Leo(f)).kind
ResetsTo(f, l, kind) == net[f][l].type = "out of range" /\ Accepts(f, l) /\ ResetOf(f, l) = kind

NobodyStartsAtLeaderStart == \A f, l \in Broker : ~ResetsTo(f, l, "to leader start")
NobodyStartsAtLeaderStartWithRecords == \A f, l \in Broker : ResetsTo(f, l, "to leader start") => Leo(f) = LogStartOf(f)

\* A leader offers an older log start than a follower has.
NoLeaderStartsEarlier == \A f, l \in Broker : Follows(f, l) /\ IsCurrentLeader(l) => LogStartOf(l) >= LogStartOf(f)

\* A high watermark from before the follower's own log start arrives, and is raised to it.
NoHwBelowLogStart == \A f, l \in Broker : net[f][l].type = "data" /\ Accepts(f, l) => net[f][l].hw >= LogStartOf(f)

\* A truncation before the own log start takes the log start along.
NoTruncationBelowLogStart == \A f, l \in Broker : Divergence(f, l) => TruncationPoint(f, l).offset >= LogStartOf(f)

\* A fetch that can name no last epoch, not from an empty log.
LastEpochIsNamed ==
  \A f, l \in Broker : net[f][l].type = "request" /\ net[f][l].offset > 0 => net[f][l].lastEpoch # Undefined
==================================================================================
