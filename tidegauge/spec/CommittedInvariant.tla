---------------------------- MODULE CommittedInvariant ----------------------------
(***********************************************************************************
 What the proof that committed data outlives elections rests on (spec/proofs, an
 inductive invariant for any number of brokers and epochs), said of the states of
 `Replication`.  The proof has ghosts that stand for what was: the log of each epoch's
 leader, what was committed in it.  Here are the statements that need none of them;
 docs/spec-for-kafka-people.md lists these invariants with the models in which they fail.

 TLC checks each of them where the protocol is whole, and in another model, with a guard
 taken away, that it can fail.
 ***********************************************************************************)
EXTENDS Replication

\* Nobody has read of an epoch that is not, nor holds a record of one.
EpochsAreElected ==
  \A b \in Broker : epoch[b] <= controller.epoch /\ \A n \in 1..Leo(b) : log[b][n] <= controller.epoch

\* An epoch has one leader, and it is the one that metadata named.
OneLeaderPerEpoch ==
  \A a, b \in Broker :
    role[a] = "leader" => leader[a] = a /\ (role[b] = "leader" /\ epoch[a] = epoch[b] => a = b)

\* The leader is in sync with itself ...
LeaderIsInIsr == controller.leader # NoBroker => controller.leader \in controller.isr

\* ... and was so before it was elected.
LeadersComeFromIsr ==
  [][controller'.epoch > controller.epoch /\ controller'.leader # NoBroker => controller'.leader \in controller.isr]_vars

\* A leader has begun its epoch: its cache says so, with or without a record.
LeaderHasItsEpoch == \A b \in Broker : role[b] = "leader" => LatestEpoch(Cache(b)) = epoch[b]

\* Only who has read of an epoch asks in it.
MessagesAreOfKnownEpochs == \A f, l \in Broker : net[f][l] # Nothing => net[f][l].epoch <= epoch[f]

\* A leader has recorded no log end beyond its own.
RecordedEndsAreReal == \A l, r \in Broker : role[l] = "leader" => remoteLeo[l][r] <= Leo(l)

\* In its epoch, a follower shares with its leader what the leader has recorded of it.
RecordedIsShared ==
  \A l, f \in Broker :
    role[l] = "leader" /\ Follows(f, l) /\ epoch[f] = epoch[l] /\ remoteLeo[l][f] # Undefined
      => IsPrefix(Prefix(log[l], MinOf({remoteLeo[l][f], Leo(l)})), log[f])

\* Every member of the ISR has what the leader shows ...
IsrHasWhatLeaderShows ==
  \A l \in Broker : IsCurrentLeader(l) => \A r \in controller.isr : IsPrefix(Prefix(log[l], hw[l]), log[r])

\* ... and so has everybody that the leader counts, proposed members with them.
CountedHaveWhatLeaderShows ==
  \A l \in Broker :
    IsCurrentLeader(l) => \A r \in MaximalIsr(isr[l], pending[l]) : IsPrefix(Prefix(log[l], hw[l]), log[r])

\* A leader proposes an ISR that it is in ...
ProposalHasLeader == \A l \in Broker : pending[l] # {} => l \in pending[l]

\* ... and adds who has reached the start of its epoch.
JoinersReachedEpochStart ==
  \A l \in Broker : role[l] = "leader" => \A r \in pending[l] \ isr[l] : remoteLeo[l][r] >= EpochStart(l)
==================================================================================
