------------------------------- MODULE MCAbstract --------------------------------
(* `AbstractReplication` with bounds: what the promise alone implies, with three brokers. *)
EXTENDS AbstractReplication

CONSTANTS
  b1, b2, b3,   \* model values
  MaxLog,       \* longest log
  MaxEpoch      \* last leader epoch

MCNext ==
  /\ Next
  /\ \A b \in Broker : Len(log'[b]) <= MaxLog
  /\ elected'.epoch <= MaxEpoch

MCSpec == Init /\ [][MCNext]_vars
==================================================================================
