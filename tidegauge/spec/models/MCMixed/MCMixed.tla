---------------------------------- MODULE MCMixed ----------------------------------
(***********************************************************************************
 `MCReplication` with a profile per broker: releases side by side, as while a cluster is
 upgraded.  A switch of a profile is the set of the brokers that have it; a .cfg gives
 the sets, and puts the decisions below in.

 What a request carries is of its sender's version (Replication.tla): those decisions
 ask for the sender f, the others for the broker that decides.
 ***********************************************************************************)
EXTENDS MCReplication

CONSTANTS
  TruncationOnFetch,      \* fetches carry the last epoch; else a follower asks for the end of its epoch first
  Fencing,                \* requests carry the leader epoch (KIP-320)
  EpochInResponse,        \* the response about an epoch names the one that was found (KIP-279)
  EpochResponsesChecked,  \* such a response of another epoch is dropped
  ResponseEpochChecked,   \* so is a fetch response (KAFKA-18991)
  KeepsRemoteLeo          \* a leader that is elected again keeps what it recorded (F2)

Switches ==
  {TruncationOnFetch, Fencing, EpochInResponse, EpochResponsesChecked, ResponseEpochChecked, KeepsRemoteLeo}

ASSUME SwitchesAreOfBrokers == \A S \in Switches : S \subseteq Broker

RefusesBySender(l, f, requested) == RequestError(requested, epoch[l], role[l] = "leader", f \in Fencing) # "none"

DecideBySender(l, f, offset, lastEpoch) ==
  FetchDecision(Cache(l), LogStart, Leo(l), offset, IF f \in TruncationOnFetch THEN lastEpoch ELSE Undefined)

EpochEndBySender(l, f, asked) ==
  LET found == EndOffsetFor(Cache(l), Leo(l), asked)
  IN  IF f \in EpochInResponse THEN found ELSE [found EXCEPT !.epoch = Undefined]

EpochEndMatchesOwn(f, m) == f \in EpochResponsesChecked => AcceptsEpochResponse(epoch[f], m.epoch)

MatchesOwn(f, m) ==
  IF f \in ResponseEpochChecked THEN AcceptsFetchResponse(Leo(f), epoch[f], m.offset, m.epoch) ELSE MatchesOffset(f, m)

StartsTruncatingOwn(b) == b \notin TruncationOnFetch /\ AsksForEpochEnd(b)

ForgetsOwn(b) == ForgetsLogEnds(epoch[b], controller.epoch, role[b] = "leader", b \in KeepsRemoteLeo)

MixedSpec == Init /\ [][MCNext]_vars
====================================================================================
