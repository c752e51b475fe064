---------------------------------- MODULE MCELR -----------------------------------
(***********************************************************************************
 `ELR` with the bounds of MCReplication, guards taken away by name, and states that must
 be reached.
 ***********************************************************************************)
EXTENDS ELR, MCReplication

\* For View: the controller's part goes on with what it knows beside the partition's registration, and with who is down after a
\* clean stop.
ElrView ==
  [Parts EXCEPT ![2] = @ \o
     <<Mask(elr), Index(lastLeader), Mask(clean), [i \in 1..Count |-> Mask(reborn[Order[i]])]>>]

MCBrokerStep ==
  \/ \E l \in Broker : MCLeaderAppend(l)
  \/ \E l, f \in Broker, expand \in BOOLEAN : MCHandleFetch(l, f, expand)
  \/ \E l \in Broker, removed \in SUBSET Broker : MCShrinkIsr(l, removed)
  \/ \E f \in Broker : MCSendFetch(f)
  \/ \E f, l \in Broker : MCHandleFetchResponse(f, l)
  \/ \E f, l \in Broker : MCHandleDivergingResponse(f, l)
  \/ \E f, l \in Broker : MCHandleOutOfRange(f, l)
  \/ \E f, l \in Broker : MCLoseResponse(f, l)
  \/ \E b \in Broker : MCBecomeLeader(b)
  \/ \E b \in Broker : MCBecomeFollower(b)

\* Elections are bounded, and stops; what heals is not.
MayElectStill == controller'.epoch <= MaxEpoch

MCStop(b) == crashes < MaxCrash /\ Stop(b) /\ ReportStep(<<"Stop", Index(b)>>)
MCCrashAndLose(b, h, kept) ==
  crashes < MaxCrash /\ CrashAndLose(b, h, kept) /\ ReportStep(<<"CrashAndLose", Index(b), h, kept>>)
MCFenceElr(b, k) == FenceElr(b, k) /\ MayElectStill /\ ReportStep(<<"FenceElr", Index(b), Index(k)>>)
MCRegister(b, k) == Register(b, k) /\ MayElectStill /\ ReportStep(<<"Register", Index(b), Index(k)>>)
MCUnfenceElr(b, k) == UnfenceElr(b, k) /\ MayElectStill /\ ReportStep(<<"UnfenceElr", Index(b), Index(k)>>)
MCAlterPartitionElr(b) == AlterPartitionElr(b) /\ ReportStep(<<"AlterPartitionElr", Index(b)>>)
MCElectLastKnown(k) == ElectLastKnown(k) /\ MayElectStill /\ ReportStep(<<"ElectLastKnown", Index(k)>>)
MCElectAnybody(k) == ElectAnybody(k) /\ MayElectStill /\ ReportStep(<<"ElectAnybody", Index(k)>>)

\* A step is reported when all that it changes is known.
MCElrNext ==
  \/ UNCHANGED <<elr, lastLeader, clean>> /\ MCBrokerStep /\ Proposals
  \/ \E b \in Broker : MCStop(b)
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b], kept \in 0..Leo(b) : MCCrashAndLose(b, checkpoint, kept)
  \/ \E b \in Broker, k \in BrokerOrNone : MCFenceElr(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : MCRegister(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : MCUnfenceElr(b, k)
  \/ UNCHANGED elrVars /\ \E k \in Broker : MCElectPreferred(k)
  \/ \E b \in Broker : MCAlterPartitionElr(b)

MCElrSpec == ElrInit /\ [][MCElrNext]_allVars

\* With a last resort.
MCLastKnownNext == MCElrNext \/ \E k \in Broker : MCElectLastKnown(k)
MCAnybodyNext == MCElrNext \/ \E k \in Broker : MCElectAnybody(k)
MCLastKnownSpec == ElrInit /\ [][MCLastKnownNext]_allVars
MCAnybodySpec == ElrInit /\ [][MCAnybodyNext]_allVars

----------------------------------------------------------------------------------
(* Guards taken away *)

\* The high watermark already moves when a member is proposed that would make enough of them.
ProposedCountsToo(committedIsr, proposed) == Cardinality(committedIsr \cup proposed) < EffectiveMinIsr

EverybodyKeepsItsLog(b) == {}
StaysOnRegistration(b) == controller.isr
ElrIsNeverCleared(newIsr, lost) == (elr \cup controller.isr) \ (newIsr \cup lost)
NobodyOnUnfence(live) == {}
LastLeaderStays == lastLeader
FencedMayLeadToo(k) == TRUE

----------------------------------------------------------------------------------
(* Reachability, expected to fail *)

\* A leader is elected that was not in the ISR: from the ELR.
NobodyIsElectedFromElr ==
  [][controller'.epoch > controller.epoch /\ controller'.leader # NoBroker => controller'.leader \in controller.isr]_allVars

NobodyLeftToElect == ~(controller.isr = {} /\ elr = {})
LastKnownIsNeverElected ==
  [][~(controller.isr = {} /\ elr = {} /\ controller'.leader # NoBroker)]_allVars

\* A broker comes back from a clean stop and leads, elected from the ELR.
CleanStopIsForgotten ==
  [][\A b \in Broker : b \in clean /\ up'[b] /\ ~up[b] => b \notin elr']_allVars

\* A record that was committed is missing on a live follower, and it can get it back: what the loss of a tail looks like.
NoTailIsRefetched ==
  \A f, l \in Broker :
    ~(net[f][l].type = "data" /\ Accepts(f, l) /\ net[f][l].records # <<>> /\ Leo(f) < Len(committed)
      /\ crashes > 0 /\ hw[f] < hw[l])

\* The leader has lost a committed record and was elected all the same: a follower that kept it truncates it.
NoCommittedRecordIsTruncated ==
  \A f, l \in Broker : Divergence(f, l) => TruncationPoint(f, l).offset >= MinOf({Leo(f), Len(committed)})

\* A proposal is refused because a member is not who it was.
NobodyIsReborn ==
  \A b \in Broker :
    ~(pending[b] # {} /\ controller.leader = b /\ controller.epoch = epoch[b] /\ controller.isr = isr[b]
      /\ pending[b] \subseteq controller.live /\ pending[b] \cap reborn[b] # {})
==================================================================================
