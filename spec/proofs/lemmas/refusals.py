"""Proofs about refused requests, accepted responses, and the effect of an error on an ISR proposal.

Each goal is stated from its meaning in Kafka, with Kafka's codes written out: not from the text of the rule.
"""

from typing import Any

import z3

from tidegauge.spec.proofs.engine.paths import ProofPath

UNDEFINED = -1
NONE, NOT_LEADER, FENCED, UNKNOWN = 0, 6, 74, 75
COMMITTED, GIVEN_UP, WAITS_FOR_METADATA, SENT_AGAIN = range(4)


def _epochs(path: ProofPath) -> tuple[Any, Any]:
    """Return a request's leader epoch, and that of the broker that handles it: -1 while it has none."""
    return path.integer("requested", low=UNDEFINED), path.integer("local", low=UNDEFINED)


def refusals(path: ProofPath, size: int) -> None:
    """Prove the order of Partition#getLocalLog: the epoch first, leadership second."""
    del size
    requested, local = _epochs(path)
    serves, fences = path.boolean("serves"), path.boolean("fences")
    error = path.call("request_error", requested, local, serves, fences)
    compared = z3.And(fences, requested != UNDEFINED)
    path.goal("an older epoch is fenced, whoever is asked", z3.Implies(z3.And(compared, requested < local), error == FENCED))
    path.goal("a newer one is unknown, whoever is asked", z3.Implies(z3.And(compared, requested > local), error == UNKNOWN))
    passes = z3.Or(z3.Not(compared), requested == local)
    path.goal("then who does not serve refuses", z3.Implies(z3.And(passes, z3.Not(serves)), error == NOT_LEADER))
    path.goal("and who does answers", z3.Implies(z3.And(passes, serves), error == NONE))


def fetch_refusals(path: ProofPath, size: int) -> None:
    """Prove the order of Partition#fetchRecords and #followerReplicaOrThrow: the assignment is checked last."""
    del size
    requested, local = _epochs(path)
    serves, assigned, fences = path.boolean("serves"), path.boolean("assigned"), path.boolean("fences")
    error = path.call("fetch_error", requested, local, serves, assigned, fences)
    before = path.call("request_error", requested, local, serves, fences)
    path.goal("what any request is refused for comes first", z3.Implies(before != NONE, error == before))
    path.goal("an assigned replica is refused for nothing else", z3.Implies(assigned, error == before))
    stranger = z3.And(before == NONE, z3.Not(assigned))
    path.goal("no other replica is served", z3.Implies(stranger, error != NONE))
    path.goal(
        "with an epoch, the leader has metadata to read", z3.Implies(z3.And(stranger, requested >= 0), error == UNKNOWN)
    )
    path.goal("without one, it is not its leader", z3.Implies(z3.And(stranger, requested < 0), error == NOT_LEADER))


def epoch_responses(path: ProofPath, size: int) -> None:
    """Prove which OffsetsForLeaderEpoch responses AbstractFetcherThread#truncateToEpochEndOffsets takes (KAFKA-7786)."""
    del size
    epoch, asked_in = path.integer("entry_epoch", low=0), path.integer("request_epoch", low=UNDEFINED)
    truncating, checked = path.boolean("truncating"), path.boolean("epoch_checked")
    taken = path.call("accepts_epoch_response", epoch, truncating, asked_in, checked)
    path.goal("only while it is waited for", z3.Implies(taken, truncating))
    path.goal("with the check, only in the epoch it was asked in", z3.Implies(z3.And(taken, checked), asked_in == epoch))
    path.goal("every other is taken", z3.Or(taken, z3.Not(truncating), z3.And(checked, asked_in != epoch)))


def proposals(path: ProofPath, size: int) -> None:
    """Prove Partition#handleAlterPartitionError for every error code, also those of later versions."""
    del size
    error = path.integer("error", low=UNDEFINED)
    after = path.call("proposal_after", error)
    given_up = z3.Or(error == 55, error == 107)  # OPERATION_NOT_ATTEMPTED, INELIGIBLE_REPLICA
    waits = z3.Or(*(error == code for code in (3, 42, FENCED, 95, 100, 108)))
    path.goal("only without an error it is committed", (after == COMMITTED) == (error == NONE))
    path.goal("it is given up where the controller cannot have taken it", (after == GIVEN_UP) == given_up)
    path.goal("it waits where newer metadata decides", (after == WAITS_FOR_METADATA) == waits)
    path.goal(
        "after any other error it is sent again",
        (after == SENT_AGAIN) == z3.Not(z3.Or(error == NONE, given_up, waits)),
    )
