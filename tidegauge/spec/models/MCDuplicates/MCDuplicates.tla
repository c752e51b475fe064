------------------------------- MODULE MCDuplicates -------------------------------
(***********************************************************************************
 `MCReplication` with one response that may arrive twice.  A connection delivers each response
 once, and the client matches it by correlation id; this module asks what holds without.

 A copy of a response is set aside and comes again once, in place of what the follower has
 in flight with that leader, whose request then counts as lost.
 ***********************************************************************************)
EXTENDS MCReplication

VARIABLE copy           \* a response: for whom, from whom, how often it has come; or NoCopy

NoCopy == [follower |-> NoBroker, leader |-> NoBroker, message |-> Nothing, came |-> 0]
twice == <<vars, copy>>

\* Which answers may come twice; replaced in a .cfg.
ComesTwice(type) == type \in {"data", "diverging", "out of range"}
OnlyData(type) == type = "data"

Duplicate(f, l) ==
  /\ copy = NoCopy
  /\ Answered(f, l)
  /\ ComesTwice(net[f][l].type)
  /\ copy' = [follower |-> f, leader |-> l, message |-> net[f][l], came |-> 1]
  /\ UNCHANGED vars

DeliverCopy(f, l) ==
  /\ copy.came = 1
  /\ copy.follower = f /\ copy.leader = l
  /\ ~Answered(f, l)
  /\ Reply(f, l, copy.message)
  /\ copy' = [copy EXCEPT !.came = 2]
  /\ UNCHANGED <<disk, memory, controller, committed, crashes>>

DuplicatesNext ==
  \/ MCNext /\ UNCHANGED copy
  \/ \E f, l \in Broker : Duplicate(f, l)
  \/ \E f, l \in Broker : DeliverCopy(f, l)

DuplicatesSpec == Init /\ copy = NoCopy /\ [][DuplicatesNext]_twice

\* The second one has arrived, where its request was already answered.
HasComeAgain(f, l) == copy.came = 2 /\ copy.follower = f /\ copy.leader = l /\ net[f][l] = copy.message

\* Reachability, expected to fail: it is dropped; it is taken.
NoDuplicateIsDropped == \A f, l \in Broker : HasComeAgain(f, l) /\ Follows(f, l) => Accepts(f, l)
NoDuplicateIsTaken == \A f, l \in Broker : HasComeAgain(f, l) => ~Accepts(f, l)
==================================================================================
