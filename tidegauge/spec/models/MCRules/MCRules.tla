--------------------------------- MODULE MCRules ---------------------------------
(***********************************************************************************
 Prints the value of each operator of `Rules` for all small arguments, one row each:
 <<"row", name, arguments, value>>.  No behaviour: TLC evaluates the assumption and ends.
 A test holds every row against impl/rules.py.
 ***********************************************************************************)
EXTENDS Rules, TLC

CONSTANTS
  MaxOffset,      \* offsets run from 0 to here, Undefined where a rule may get it
  LastEpoch       \* epochs likewise

Offsets == 0..MaxOffset
Epochs == 0..LastEpoch
OrUndefined(S) == S \cup {Undefined}

\* Every cache with epochs and starts in range: strictly increasing in both.
Increasing(S, n) == {s \in [1..n -> S] : \A i \in 1..(n - 1) : s[i] < s[i + 1]}
Caches ==
  UNION {{[i \in 1..n |-> [epoch |-> e[i], start |-> s[i]]] : e \in Increasing(Epochs, n), s \in Increasing(Offsets, n)}
         : n \in 0..(LastEpoch + 1)}
EndsOf(cache) == {o \in Offsets : cache = <<>> \/ o >= cache[Len(cache)].start}
Plain(cache) == [i \in 1..Len(cache) |-> <<cache[i].epoch, cache[i].start>>]

Row(name, arguments, value) == PrintT(ToString(<<"row", name, arguments, value>>))
Bit(boolean) == IF boolean THEN 1 ELSE 0

Errors == "none" :> 0 @@ "not leader" :> 6 @@ "fenced" :> 74 @@ "unknown" :> 75
Kinds == "read" :> 0 @@ "diverging" :> 1 @@ "out of range" :> 2
Resets == "to leader end" :> 1 @@ "to leader start" :> 2 @@ "to log end" :> 3

ASSUME EndOffsetForRows ==
  \A cache \in Caches : \A end \in EndsOf(cache), requested \in OrUndefined(Epochs) :
    LET found == EndOffsetFor(cache, end, requested)
    IN  Row("end_offset_for", <<Plain(cache), end, requested>>, <<found.epoch, found.end>>)

ASSUME LatestEpochRows ==
  \A cache \in Caches : Row("latest_epoch", <<Plain(cache)>>, LatestEpoch(cache))

ASSUME CheckLeaderEpochRows ==
  \A requested, local \in OrUndefined(Epochs) :
    Row("check_leader_epoch", <<requested, local>>, Errors[CheckLeaderEpoch(requested, local)])

ASSUME RequestErrorRows ==
  \A requested, local \in OrUndefined(Epochs) : \A serves, fences \in BOOLEAN :
    Row("request_error", <<requested, local, Bit(serves), Bit(fences)>>,
        Errors[RequestError(requested, local, serves, fences)])

ASSUME ForgetsLogEndsRows ==
  \A known \in OrUndefined(Epochs), new \in Epochs : \A wasLeader, keeps \in BOOLEAN :
    Row("forgets_log_ends", <<known, new, Bit(wasLeader), Bit(keeps)>>, Bit(ForgetsLogEnds(known, new, wasLeader, keeps)))

ASSUME FetchDecisionRows ==
  \A cache \in Caches : \A end \in EndsOf(cache), start \in {0, 1}, offset \in Offsets, last \in OrUndefined(Epochs) :
    LET d == FetchDecision(cache, start, end, offset, last)
    IN  Row("fetch_decision", <<Plain(cache), start, end, offset, last>>, <<Kinds[d.kind], d.epoch, d.end>>)

ASSUME TruncationTargetRows ==
  \A cache \in Caches : \A end \in EndsOf(cache), offset \in Offsets, e \in OrUndefined(Epochs), o \in OrUndefined(Offsets) :
    LET t == TruncationTarget(cache, end, offset, e, o)
    IN  Row("truncation_target", <<Plain(cache), end, offset, e, o>>, <<t.row, t.offset, Bit(t.completed)>>)

ASSUME SmallRows ==
  \A x, y, z \in Offsets :
    /\ Row("out_of_range_reset", <<x, y, z>>,
           LET r == OutOfRangeReset(x, y, z) IN <<Resets[r.kind], r.offset>>)
    /\ Row("may_join_isr", <<x, y, z>>, Bit(MayJoinIsr(x, y, z)))
    /\ Row("high_watermark_after_truncation", <<x, y>>, HighWatermarkAfterTruncation(x, y))
    /\ y <= z => Row("follower_high_watermark", <<x, y, z>>, FollowerHighWatermark(x, y, z))
    /\ x <= y => \A first, second \in OrUndefined(Offsets) :
         Row("leader_high_watermark", <<x, y, first, second>>, LeaderHighWatermark(x, y, {first, second}))

ASSUME AcceptsRows ==
  \A own, asked \in Offsets : \A at, of \in OrUndefined(Epochs) :
    /\ Row("accepts_fetch_response", <<own, at, asked, of>>, Bit(AcceptsFetchResponse(own, at, asked, of)))
    /\ Row("accepts_epoch_response", <<at, of>>, Bit(AcceptsEpochResponse(at, of)))

==================================================================================
