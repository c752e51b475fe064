-------------------------------- MODULE MCAtomic ---------------------------------
(***********************************************************************************
 `MCReplication` with two exchanges in one step each: the fetch (ask, answer, append or
 truncate), and the ISR change (propose, commit, learn).  Nothing is ever in flight, so
 nothing is stale, lost or overtaken by metadata; metadata of elections still reaches
 each broker on its own.  That leaves far fewer states, and three brokers fit in every
 run.

 It is a part of the behaviours of `Replication`, not an abstraction of them: what fails
 here fails there, what holds here is only not refuted.
 ***********************************************************************************)
EXTENDS MCReplication

\* Put in for Send (a .cfg): BecomeFollower sends nothing.
SendNothing(f, l, request) == UNCHANGED net

\* The controller would commit a proposal of l at once.
IsHeard(l) == controller.leader = l /\ controller.epoch = epoch[l] /\ controller.isr = isr[l]

(*
  WHO         a follower f and its leader l, both up and in the same epoch
  WHAT        the whole fetch, and the ISR expansion it may bring
*)
AtomicFetch(f, l, expand) ==
  /\ Follows(f, l)
  /\ up[l]
  /\ ~Refuses(l, f, epoch[f])
  /\ LET decision == Decide(l, f, Leo(f), LatestEpoch(Cache(f)))
         truncateTo(target) == ~expand /\ TruncateAt(f, target) /\ UNCHANGED <<isr, remoteLeo, controller, committed>>
     IN  CASE decision.kind = "diverging" ->
                truncateTo(TruncationTarget(Cache(f), Leo(f), Leo(f), decision.epoch, decision.end).offset)
           [] decision.kind = "out of range" -> truncateTo(OutOfRangeReset(LogStart, Leo(l), Leo(f)).offset)
           [] decision.kind = "read" ->
                LET newIsr == IF expand THEN isr[l] \cup {f} ELSE isr[l]
                    remote == [remoteLeo[l] EXCEPT ![f] = Leo(f)]
                    h == LeaderHw(l, hw[l], Leo(l), remote, newIsr, {})
                    records == log[f] \o SubSeq(log[l], Leo(f) + 1, MinOf({Leo(f) + MaxFetch, Leo(l)}))
                IN  /\ expand => IsHeard(l) /\ f \in controller.live \ isr[l] /\ InSync(l, Leo(f))
                    /\ isr' = [isr EXCEPT ![l] = newIsr]
                    /\ controller' = IF expand THEN [controller EXCEPT !.isr = newIsr] ELSE controller
                    /\ remoteLeo' = [remoteLeo EXCEPT ![l] = remote]
                    /\ log' = [log EXCEPT ![f] = records]
                    /\ mark' = IF records = log[f] THEN mark ELSE [mark EXCEPT ![f] = Undefined]
                    /\ hw' = [hw EXCEPT ![l] = h, ![f] = FollowerHighWatermark(hw[l], LogStart, Len(records))]
                    /\ Expose(log[l], h)
  /\ UNCHANGED <<up, role, epoch, leader, pending, net, crashes>>

\* WHO a leader.  WHAT drops members that are behind, and may raise the high watermark.
AtomicShrink(l, removed) ==
  /\ up[l]
  /\ role[l] = "leader"
  /\ IsHeard(l)
  /\ removed # {}
  /\ removed \subseteq {r \in isr[l] \ {l} : remoteLeo[l][r] # Leo(l)}
  /\ LET newIsr == isr[l] \ removed
         h == LeaderHw(l, hw[l], Leo(l), remoteLeo[l], newIsr, {})
     IN  /\ isr' = [isr EXCEPT ![l] = newIsr]
         /\ controller' = [controller EXCEPT !.isr = newIsr]
         /\ hw' = [hw EXCEPT ![l] = h]
         /\ Expose(log[l], h)
  /\ UNCHANGED <<log, mark, up, role, epoch, leader, pending, remoteLeo, net, crashes>>

AtomicReplicaStep ==
  \/ \E l \in Broker : MCLeaderAppend(l)
  \/ \E f, l \in Broker, expand \in BOOLEAN : AtomicFetch(f, l, expand)
  \/ \E l \in Broker, removed \in SUBSET Broker : AtomicShrink(l, removed)
  \/ \E b \in Broker : MCBecomeLeader(b)
  \/ \E b \in Broker : MCBecomeFollower(b)

AtomicSessionStep ==
  \/ \E b \in Broker : MCRestart(b)
  \/ \E b \in Broker, k \in BrokerOrNone : MCFenceBroker(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : MCUnfenceBroker(b, k)
  \/ \E k \in Broker : MCElectPreferred(k)

AtomicNext ==
  \/ AtomicReplicaStep
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b] : MCCrash(b, checkpoint)
  \/ AtomicSessionStep

AtomicSpec == Init /\ [][AtomicNext]_vars

==================================================================================
