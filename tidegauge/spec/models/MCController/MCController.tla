------------------------------ MODULE MCController -------------------------------
(***********************************************************************************
 `Controller` with bounds, and the report of each transition that spec/tlc/graph.py
 reads.
 ***********************************************************************************)
EXTENDS Controller, TLC

CONSTANTS
  Replicas,             \* the replicas at first, as digits: 123
  Targets,              \* what they may be reassigned to; {} for no reassignment
  MinIsr,               \* min.insync.replicas at first
  MinIsrs,              \* what it may be changed to
  MaxLog,               \* longest log
  MaxPartitionEpoch,    \* most changes of the partition
  MaxStops,             \* how often processes may die or be asked to stop
  Deletes, Unregisters, DisksFail,    \* whether there are such steps
  LateConfig,           \* whether the leader may hear late of another min.insync.replicas
  Toggles               \* whether the feature may be switched off and on

ASSUME DirectoriesAreOfOneAssignment == DisksFail => Targets = {} /\ ~Unregisters /\ ~Toggles

VARIABLE stops
mcVars == <<vars, stops>>

RECURSIVE Digits(_)
Digits(number) == IF number = 0 THEN <<>> ELSE Append(Digits(number \div 10), number % 10)

----------------------------------------------------------------------------------
(* A state and a label as nested tuples of small numbers, as in MCReplication: brokers count from 0, sets of them are bit
   masks, -1 is "none" *)

Count == Cardinality(Broker)
Index(b) == b - 1
Indexes(brokers) == [i \in 1..Len(brokers) |-> Index(brokers[i])]
Mask(S) ==
  LET bit(b) == IF b \in S THEN 2 ^ (b - 1) ELSE 0
  IN  bit(1) + bit(2) + bit(3)
Flag(boolean) == IF boolean THEN 1 ELSE 0
PerBroker(value(_)) == [b \in 1..Count |-> value(b)]

PartitionView ==
  IF ~Exists THEN <<>>
  ELSE <<Indexes(reg.replicas), Mask(reg.adding), Mask(reg.removing), Mask(reg.isr), Mask(reg.elr), Indexes(reg.last),
         Index(reg.leader), Flag(reg.recovering), reg.leaderEpoch, reg.epoch>>

Processes == [up |-> 0, stopping |-> 1, stopped |-> 2, dead |-> 3]
Places == [first |-> 0, failed |-> 1, second |-> 2]
BrokerView(b) ==
  <<Processes[process[b]], IF ~broker[b].registered THEN 0 ELSE IF broker[b].fenced THEN 1 ELSE 2, Flag(broker[b].stopping),
    Places[place[b]]>>

View ==
  LET logOf(b) == log[b]
      indexOf(b) == index[b]
  IN  <<PartitionView, PerBroker(BrokerView), PerBroker(logOf), committed, stops, minIsr, knownMinIsr,
        <<PerBroker(indexOf), Mask(stale), Flag(elrOn)>>>>

\* Replaced by PrintTarget, in a .cfg, when the graph is asked for: MCReplication says why a state is printed once.
ReportStep(label) == TRUE

PrintSource == PrintT(ToString(<<"from", View>>)) /\ FALSE
PrintTarget(label) == PrintT(ToString(<<"step", label, "to", View'>>))

----------------------------------------------------------------------------------
(* Bounds *)

Within(label) == reg'.epoch <= MaxPartitionEpoch /\ UNCHANGED stops /\ ReportStep(label)
Stopping(label, counts) ==
  /\ counts => stops < MaxStops
  /\ reg'.epoch <= MaxPartitionEpoch
  /\ stops' = IF counts THEN stops + 1 ELSE stops
  /\ ReportStep(label)

MCLeaderAppend(l) == Len(log[l]) < MaxLog /\ LeaderAppend(l) /\ Within(<<"LeaderAppend">>)
MCCatchUp(f) == CatchUp(f) /\ Within(<<"CatchUp", Index(f)>>)
MCAcknowledge == Acknowledge /\ Within(<<"Acknowledge">>)
MCExpand(f) == Expand(f) /\ Within(<<"Expand", Index(f)>>)
MCShrink(f) == Shrink(f) /\ Within(<<"Shrink", Index(f)>>)
MCReadConfig == ReadConfig /\ Within(<<"ReadConfig">>)
MCFence(b) == Fence(b) /\ Within(<<"Fence", Index(b)>>)
MCUnfence(b, fails) == (fails => DisksFail) /\ Unfence(b, fails) /\ Within(<<"Unfence", Index(b), Flag(fails)>>)
MCFailDirectory(b) == DisksFail /\ FailDirectory(b) /\ Within(<<"FailDirectory", Index(b)>>)
MCShutDown(b) == ShutDown(b) /\ Stopping(<<"ShutDown", Index(b)>>, process[b] = "up")
MCDie(b, kept) == Die(b, kept) /\ Stopping(<<"Die", Index(b), Flag(kept)>>, TRUE)
MCRegister(b, moved) == Register(b, moved) /\ Within(<<"Register", Index(b), Flag(moved)>>)
MCUnregister(b) == Unregisters /\ Unregister(b) /\ Within(<<"Unregister", Index(b)>>)
MCReassign(target) == Reassign(target) /\ Within(<<"Reassign", Indexes(target)>>)
MCCancel == Targets # {} /\ Cancel /\ Within(<<"Cancel">>)
MCElectPreferred == ElectPreferred /\ Within(<<"ElectPreferred">>)
MCElectUnclean == Unclean /\ ElectUnclean /\ Within(<<"ElectUnclean">>)
MCSetMinIsr(value) == SetMinIsr(value, ~LateConfig) /\ Within(<<"SetMinIsr", value>>)
MCSetElr(on) == Toggles /\ SetElr(on) /\ Within(<<"SetElr", Flag(on)>>)
MCDelete == Deletes /\ Delete /\ Within(<<"Delete">>)

MCInit == Init(Digits(Replicas), MinIsr) /\ stops = 0

MCNext ==
  \/ \E l \in Broker : MCLeaderAppend(l)
  \/ \E f \in Broker : MCCatchUp(f)
  \/ MCAcknowledge
  \/ \E f \in Broker : MCExpand(f)
  \/ \E f \in Broker : MCShrink(f)
  \/ MCReadConfig
  \/ \E b \in Broker : MCFence(b)
  \/ \E b \in Broker, fails \in BOOLEAN : MCUnfence(b, fails)
  \/ \E b \in Broker : MCFailDirectory(b)
  \/ \E b \in Broker : MCShutDown(b)
  \/ \E b \in Broker, kept \in BOOLEAN : MCDie(b, kept)
  \/ \E b \in Broker, moved \in BOOLEAN : MCRegister(b, moved)
  \/ \E b \in Broker : MCUnregister(b)
  \/ \E target \in {Digits(number) : number \in Targets} : MCReassign(target)
  \/ MCCancel
  \/ MCElectPreferred
  \/ MCElectUnclean
  \/ \E value \in MinIsrs : MCSetMinIsr(value)
  \/ \E on \in BOOLEAN : MCSetElr(on)
  \/ MCDelete

\* A guard taken away.
Never == FALSE

MCSpec == MCInit /\ [][MCNext]_mcVars
==================================================================================
