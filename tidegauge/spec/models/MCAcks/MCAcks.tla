---------------------------------- MODULE MCAcks ----------------------------------
(***********************************************************************************
 `Acks` with the bounds of MCReplication and MCELR, guards taken away by name, states that
 must be reached, and the report of each transition with who waits and who was told.
 ***********************************************************************************)
EXTENDS Acks, MCELR

----------------------------------------------------------------------------------
(* What the Python explorer compares with: the view of MCReplication, and the clients *)

WaitingView(l) == [i \in 1..Len(waiting[l]) |-> <<waiting[l][i].end, waiting[l][i].epoch>>]

\* The records acknowledged with acks=all as (offset, epoch), in order.
AckedView ==
  LET row(k) == <<(k - 1) \div (MaxEpoch + 1), (k - 1) % (MaxEpoch + 1)>>
      isAcked(pair) == \E r \in AckedWith("all") : pair = <<r.offset, r.epoch>>
  IN  SelectSeq([k \in 1..(MaxLog * (MaxEpoch + 1)) |-> row(k)], isAcked)

\* For View.
AcksView == Parts \o <<[i \in 1..Count |-> WaitingView(Order[i])], AckedView>>

ErrorNumber ==
  [NONE |-> 0, NOT_LEADER_OR_FOLLOWER |-> 6, NOT_ENOUGH_REPLICAS_AFTER_APPEND |-> 20]

----------------------------------------------------------------------------------
(* The actions, bounded and reported.  Clients come first: a step that is reported knows all of the next state *)

\* A produce is reported as what it does to the log.
MCProduce(l, acks) ==
  Produce(l, acks) /\ Len(log'[l]) <= MaxLog /\ ReportStep(<<"LeaderAppend", Index(l)>>)
MCAnswerProduce(l, i) ==
  /\ AnswerProduce(l, i)
  /\ LET end == waiting[l][i].end
     IN  ReportStep(<<"AnswerProduce", Index(l), end, ErrorNumber[ResponseTo(l, end)]>>)
MCRead(l) == Read(l) /\ ReportStep(<<"Read", Index(l), hw[l], hw[l]>>)

MCClientStep ==
  \/ \E l \in Broker, acks \in Producers : MCProduce(l, acks)
  \/ \E l \in Broker : RefuseProduce(l)
  \/ \E l \in Broker : \E i \in 1..Len(waiting[l]) : MCAnswerProduce(l, i)
  \/ \E l \in Broker : MCRead(l)

MCUnaskedStep ==
  \/ \E l, f \in Broker, expand \in BOOLEAN : MCHandleFetch(l, f, expand)
  \/ \E l \in Broker, removed \in SUBSET Broker : MCShrinkIsr(l, removed)
  \/ \E f \in Broker : MCSendFetch(f)
  \/ \E f, l \in Broker : MCHandleFetchResponse(f, l)
  \/ \E f, l \in Broker : MCHandleDivergingResponse(f, l)
  \/ \E f, l \in Broker : MCHandleOutOfRange(f, l)
  \/ \E f, l \in Broker : MCLoseResponse(f, l)
  \/ \E b \in Broker : HasAnswered(b) /\ MCBecomeLeader(b)
  \/ \E b \in Broker : HasAnswered(b) /\ MCBecomeFollower(b)

MCControllerStep ==
  \/ \E b \in Broker : MCRestart(b)
  \/ \E b \in Broker, k \in BrokerOrNone : MCFenceBroker(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : MCUnfenceBroker(b, k)
  \/ \E k \in Broker : MCElectPreferred(k)
  \/ \E b \in Broker : MCAlterPartition(b)

MCElrControllerStep ==
  \/ \E b \in Broker, k \in BrokerOrNone : MCFenceElr(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : MCRegister(b, k)
  \/ \E b \in Broker, k \in BrokerOrNone : MCUnfenceElr(b, k)
  \/ \E k \in Broker : MCElectPreferred(k) /\ UNCHANGED elrVars
  \/ \E b \in Broker : MCAlterPartitionElr(b)

MCAcksNext ==
  \/ MCClientStep
  \/ UNCHANGED <<clientVars, elrVars>> /\ (MCUnaskedStep \/ MCControllerStep)
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b] : UNCHANGED elrVars /\ ClientsLose(b) /\ MCCrash(b, checkpoint)

MCAcksElrNext ==
  \/ MCClientStep
  \/ ClientsWait /\ MCUnaskedStep /\ Proposals /\ UNCHANGED <<elr, lastLeader, clean>>
  \/ ClientsWait /\ MCElrControllerStep
  \/ \E b \in Broker : ClientsLose(b) /\ MCStop(b)
  \/ \E b \in Broker : \E checkpoint \in 0..hw[b], kept \in 0..Leo(b) :
       ClientsLose(b) /\ MCCrashAndLose(b, checkpoint, kept)

MCAcksSpec == AcksInit /\ [][MCAcksNext]_acksVars
MCAcksElrSpec == AcksInit /\ [][MCAcksElrNext]_acksVars

\* With producers whom the view does not show: those who ask for acks=1.
MCAnyAcksSpec == MCAcksSpec

----------------------------------------------------------------------------------
(* Guards taken away *)

\* acks=all is answered when the leader has the record, as acks=1 is.
AtLogEnd(l, end) == Leo(l) >= end

\* Who waits at a broker goes on waiting when it loses its role.
NobodyIsAnswered(b) == TRUE

\* min.insync.replicas is not asked: at the append, at the acknowledgement.  (At the high watermark: HoldsHighWatermark as
\* Replication has it.)
AppendsAnyway(l) == FALSE
EnoughAfterAppend(l) == FALSE

\* What one lost log may cost, however few logs the record had to be on.
OneLostLogIsHarmless == \A r \in AckedWith("all") : crashes < 2 => \E b \in Broker : Holds(b, r)

----------------------------------------------------------------------------------
(* Reachability, expected to fail *)

NothingIsRefused == \A l \in Broker : ~(LeadsNow(l) /\ RefusesAppend(l))

NobodyHearsTooLate ==
  \A l \in Broker : \A i \in 1..Len(waiting[l]) :
    ResponseTo(l, waiting[l][i].end) # "NOT_ENOUGH_REPLICAS_AFTER_APPEND"

\* A member of the ISR holds a record that was acknowledged, and does not know yet that it is committed.
FollowersKnowWhatIsAcked ==
  \A r \in AckedWith("all"), f \in controller.isr : Holds(f, r) /\ Follows(f, controller.leader) => hw[f] > r.offset

\* A producer who hears that its broker leads no more, while the record is committed and stays.
WhoHearsAnErrorLosesTheRecord ==
  \A l \in Broker : \A i \in 1..Len(waiting[l]) :
    LET p == waiting[l][i]
    IN  role[l] # "leader" => ~(Len(committed) >= p.end /\ committed[p.end] = p.epoch)
==================================================================================
