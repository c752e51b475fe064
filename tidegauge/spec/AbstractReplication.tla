--------------------------- MODULE AbstractReplication ---------------------------
(***********************************************************************************
 What replication promises, without how: logs grow and are truncated, a prefix is committed
 once everybody who may be elected holds it, and only they are elected.  No messages, no
 high watermarks, no epochs in requests.

 `Replication` refines this (MCReplication!Refines, checked by TLC): each of its steps is
 one of these or changes nothing that can be seen here.  The guards below are what the
 message level has to earn with its checks.

 Simplified: a response brings one record (MaxFetch = 1).
 ***********************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Broker,
  FirstLeader,
  NoBroker

VARIABLES
  log,          \* log[b]: the leader epochs of its records
  term,         \* term[b]: the epoch in which b believes it leads, or Undefined
  committed,    \* the records that may have been acknowledged or read
  elected       \* [leader, epoch, isr] as the controller has it

vars == <<log, term, committed, elected>>

Undefined == -1
Prefix(s, n) == SubSeq(s, 1, n)
IsPrefix(s, t) == Len(s) <= Len(t) /\ s = Prefix(t, Len(s))

TypeOK ==
  /\ log \in [Broker -> Seq(Nat)]
  /\ term \in [Broker -> Nat \cup {Undefined}]
  /\ committed \in Seq(Nat)
  /\ elected \in [leader : Broker \cup {NoBroker}, epoch : Nat, isr : SUBSET Broker]

Init ==
  /\ log = [b \in Broker |-> <<>>]
  /\ term = [b \in Broker |-> IF b = FirstLeader THEN 0 ELSE Undefined]
  /\ committed = <<>>
  /\ elected = [leader |-> FirstLeader, epoch |-> 0, isr |-> Broker]

\* An epoch has one writer: the same record in two logs has the same records before it, and epochs never fall.
Consistent(logs) ==
  /\ \A b \in Broker : \A n \in 1..(Len(logs[b]) - 1) : logs[b][n] <= logs[b][n + 1]
  /\ \A a, b \in Broker : \A n \in 1..Len(logs[a]) :
       n <= Len(logs[b]) /\ logs[a][n] = logs[b][n] => Prefix(logs[a], n) = Prefix(logs[b], n)

\* A step of b may commit more of its log: what everybody in the ISR holds.
MayCommit(b, records) ==
  \/ UNCHANGED committed
  \/ \E n \in (Len(committed) + 1)..Len(records) :
       /\ IsPrefix(committed, records)
       /\ committed' = Prefix(records, n)
       /\ \A r \in elected.isr : IsPrefix(committed', IF r = b THEN records ELSE log[r])

\* A broker that believes it leads appends.
AppendRecord(b) ==
  /\ term[b] # Undefined
  /\ LET records == Append(log[b], term[b])
     IN  log' = [log EXCEPT ![b] = records] /\ MayCommit(b, records)
  /\ Consistent(log')
  /\ UNCHANGED <<term, elected>>

\* It learns of followers, and commits.
Confirm(b) ==
  /\ term[b] # Undefined
  /\ MayCommit(b, log[b])
  /\ UNCHANGED <<log, term, elected>>

\* The elected one begins to lead.
Lead(b) ==
  /\ elected.leader = b
  /\ term' = [term EXCEPT ![b] = elected.epoch]
  /\ MayCommit(b, log[b])
  /\ UNCHANGED <<log, elected>>

\* A broker stops leading: it follows now, or it crashed.
Leave(b) ==
  /\ term' = [term EXCEPT ![b] = Undefined]
  /\ UNCHANGED <<log, committed, elected>>

\* A follower takes over a record that its place in the logs allows.
Replicate(f, record) ==
  /\ term[f] = Undefined
  /\ log' = [log EXCEPT ![f] = Append(@, record)]
  /\ Consistent(log')
  /\ UNCHANGED <<term, committed, elected>>

\* A follower truncates; nobody who may be elected truncates what is committed.
Truncated(f, n) ==
  /\ term[f] = Undefined
  /\ log' = [log EXCEPT ![f] = Prefix(@, n)]
  /\ f \in elected.isr => IsPrefix(committed, log'[f])
  /\ UNCHANGED <<term, committed, elected>>

\* Whoever comes into the ISR holds what is committed; the leader stays in it.
ChangeIsr(isr) ==
  /\ isr # {}
  /\ elected.leader # NoBroker => elected.leader \in isr
  /\ \A r \in isr : IsPrefix(committed, log[r])
  /\ elected' = [elected EXCEPT !.isr = isr]
  /\ UNCHANGED <<log, term, committed>>

\* Somebody of the ISR is elected in a new epoch, or nobody; others may lose their place in it.
Elect(k, isr) ==
  /\ isr # {}
  /\ isr \subseteq elected.isr
  /\ k # NoBroker => k \in isr
  /\ elected' = [leader |-> k, epoch |-> elected.epoch + 1, isr |-> isr]
  /\ UNCHANGED <<log, term, committed>>

Next ==
  \/ \E b \in Broker : AppendRecord(b)
  \/ \E b \in Broker : Confirm(b)
  \/ \E b \in Broker : Lead(b)
  \/ \E b \in Broker : Leave(b)
  \/ \E f \in Broker, record \in 0..elected.epoch : Replicate(f, record)
  \/ \E f \in Broker : \E n \in 0..(Len(log[f]) - 1) : Truncated(f, n)
  \/ \E isr \in SUBSET Broker : ChangeIsr(isr)
  \/ \E k \in Broker \cup {NoBroker}, isr \in SUBSET Broker : Elect(k, isr)

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------------
(* Safety *)

IsrCompleteness == \A b \in elected.isr : IsPrefix(committed, log[b])
LeaderCompleteness == \A b \in Broker : term[b] = elected.epoch => IsPrefix(committed, log[b])
OneWriter == Consistent(log)
CommittedStable == [][IsPrefix(committed, committed')]_vars

THEOREM IsrIsComplete      == Spec => []IsrCompleteness
THEOREM LeadersAreComplete == Spec => []LeaderCompleteness
THEOREM EpochHasOneWriter  == Spec => []OneWriter
THEOREM CommittedStays     == Spec => CommittedStable
==================================================================================
