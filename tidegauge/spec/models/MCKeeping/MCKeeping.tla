-------------------------------- MODULE MCKeeping ---------------------------------
(***********************************************************************************
 `MCReplication` and `MCAtomic` on a network that keeps what is in flight: requests to former
 leaders are handled later, responses of former leaders arrive.

 What Kafka's brokers have: a fetcher thread for each broker that is fetched from, each with
 a connection of its own and one request in flight on it (AbstractFetcherManager,
 BrokerBlockingSender).
   * A change of leader moves a partition from one thread to another.  The thread it leaves
     lives on if it has other partitions, and so does what it has in flight for this one.
     A thread with none left is stopped, which closes its connection; so does a request that
     was not answered in time, and a sender that dies.
   * A closed connection drops the response.  The request is handled all the same once the
     leader has read it: SocketServer hands what was received to RequestChannel, from which
     nothing is taken back.  It may be handled after later requests of the same follower.
   * A leader that dies has handled what it will ever handle.

 `copies` has those requests: at most one of each pair, MaxAbandoned at a time.
 ***********************************************************************************)
EXTENDS MCAtomic

CONSTANT MaxAbandoned   \* most requests at a time that nobody waits for

VARIABLE copies         \* copies[f][l]: a request of f to l that l may yet handle, on a connection that is closed; or Nothing

keepingVars == <<vars, copies>>

NothingAbandoned == [f \in Broker |-> AllSlotsEmpty]
KeepingInit == Init /\ copies = NothingAbandoned

\* For View.
KeepingView ==
  IF MaxAbandoned = 0 THEN Parts
  ELSE Append(Parts, [i \in 1..Count |-> [j \in 1..Count |-> Slot(copies[Order[i]][Order[j]])]])

----------------------------------------------------------------------------------

MayAbandon(f, l) ==
  /\ copies[f][l] = Nothing
  /\ Cardinality({pair \in Broker \X Broker : copies[pair[1]][pair[2]] # Nothing}) < MaxAbandoned

(*
  WHO         a follower with a fetch in flight
  WHAT        closes the connection: its thread has no partition left, or it has waited too long.  It may fetch again
  KAFKA       AbstractFetcherManager#shutdownIdleFetcherThreads, BrokerBlockingSender#sendRequest
  SIMPLIFIED  a request that the leader has not received is LoseResponse after a refusal.  So is the request of a question
              about an epoch, which changes nothing at the leader
*)
Disconnect(f, l) ==
  /\ net[f][l].type = "request"
  /\ up[l]
  /\ MayAbandon(f, l)
  /\ copies' = [copies EXCEPT ![f][l] = net[f][l]]
  /\ Reply(f, l, Nothing)
  /\ UNCHANGED <<disk, memory, controller, committed, crashes>>

\* The leader reads the request, or answers something that changes nothing here.
IsRead(l, f, m) == up[l] /\ ~Refuses(l, f, m.epoch) /\ Decide(l, f, m.offset, m.lastEpoch).kind = "read"

(*
  WHO         the broker l that a request on a closed connection was sent to
  WHAT        handles it like any other; nobody gets the response
  KAFKA       KafkaRequestHandler, RequestChannel#sendResponse
*)
HandleAbandoned(l, f, expand) ==
  /\ copies[f][l] # Nothing
  /\ IF IsRead(l, f, copies[f][l]) THEN RecordFetch(l, f, copies[f][l], expand)
     ELSE ~expand /\ UNCHANGED <<remoteLeo, pending, hw, committed>>
  /\ copies' = [copies EXCEPT ![f][l] = Nothing]
  /\ UNCHANGED <<log, mark, up, role, epoch, leader, isr, net, controller, crashes>>

\* What b had received dies with it; what it had sent does not.
RequestsAreLost(b) == copies' = [f \in Broker |-> [copies[f] EXCEPT ![b] = Nothing]]

MCDisconnect(f, l) == Disconnect(f, l) /\ ReportStep(<<"Disconnect", Index(f), Index(l)>>)
MCHandleAbandoned(l, f, x) ==
  LET m == copies[f][l]
  IN  HandleAbandoned(l, f, x)
        /\ ReportStep(<<"HandleAbandoned", Index(l), Index(f), Number(x), m.epoch, m.offset, m.lastEpoch>>)
MCKeepingCrash(b) == RequestsAreLost(b) /\ \E checkpoint \in 0..hw[b] : MCCrash(b, checkpoint)

MCKeepingNext ==
  \/ UNCHANGED copies /\ (MCReplicaStep \/ MCSessionStep)
  \/ \E f, l \in Broker : MCDisconnect(f, l)
  \/ \E l, f \in Broker, expand \in BOOLEAN : MCHandleAbandoned(l, f, expand)
  \/ \E b \in Broker : MCKeepingCrash(b)

MCKeepingSpec == KeepingInit /\ [][MCKeepingNext]_keepingVars

----------------------------------------------------------------------------------
(* With the fetch and the ISR change in one step each: three brokers over three leader epochs fit *)

\* SendFetch and Disconnect.
LeaveRequest(f, l) ==
  /\ Follows(f, l)
  /\ up[l]
  /\ MayAbandon(f, l)
  /\ copies' = [copies EXCEPT ![f][l] = RequestOf(epoch[f], log[f], mark[f])]
  /\ UNCHANGED vars

\* HandleAbandoned, and the ISR expansion it may bring.
AtomicHandleAbandoned(l, f, expand) ==
  LET m == copies[f][l]
      newIsr == IF expand THEN isr[l] \cup {f} ELSE isr[l]
      remote == [remoteLeo[l] EXCEPT ![f] = m.offset]
      h == LeaderHw(l, hw[l], Leo(l), remote, newIsr, {})
  IN  /\ m # Nothing
      /\ IF IsRead(l, f, m)
         THEN /\ expand => IsHeard(l) /\ f \in controller.live \ isr[l] /\ InSync(l, m.offset)
              /\ isr' = [isr EXCEPT ![l] = newIsr]
              /\ controller' = IF expand THEN [controller EXCEPT !.isr = newIsr] ELSE controller
              /\ remoteLeo' = [remoteLeo EXCEPT ![l] = remote]
              /\ hw' = [hw EXCEPT ![l] = h]
              /\ Expose(log[l], h)
         ELSE ~expand /\ UNCHANGED <<isr, controller, remoteLeo, hw, committed>>
      /\ copies' = [copies EXCEPT ![f][l] = Nothing]
      /\ UNCHANGED <<log, mark, up, role, epoch, leader, pending, net, crashes>>

AtomicKeepingNext ==
  \/ UNCHANGED copies /\ (AtomicReplicaStep \/ AtomicSessionStep)
  \/ \E f, l \in Broker : LeaveRequest(f, l)
  \/ \E l, f \in Broker, expand \in BOOLEAN : AtomicHandleAbandoned(l, f, expand)
  \/ \E b \in Broker : MCKeepingCrash(b)

AtomicKeepingSpec == KeepingInit /\ [][AtomicKeepingNext]_keepingVars

----------------------------------------------------------------------------------
(* Reachability, expected to fail *)

\* Two fetches of one follower are under way, to the broker that leads and to the one that led.
NobodyIsAskedBesides ==
  \A f, k, l \in Broker : net[f][k].type = "request" /\ net[f][l].type = "request" => k = l

\* A leader reads a request that its sender has given up, sent before it last truncated.
NoAbandonedRequestIsRead ==
  \A f, l \in Broker : copies[f][l] # Nothing /\ role[l] = "leader" /\ IsRead(l, f, copies[f][l]) => copies[f][l].offset = Leo(f)
==================================================================================
