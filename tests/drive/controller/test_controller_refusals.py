"""Requests that a controller must refuse: the paths, held against the reference."""

from tidegauge.drive.controller.contract import ClusterOpening
from tidegauge.drive.controller.reference import reference
from tidegauge.drive.controller.walks import CANCEL, NOBODY_TAKES_OVER, TAKEN_OVER, refusal_cases
from tidegauge.impl import errors, rules
from tidegauge.impl.releases import profile_named

RIGHT = reference(profile_named("4.3.1"))
CASES = refusal_cases(ClusterOpening(30, elr=1))


def errors_of(kind: str) -> set[int]:
    return {[*RIGHT.reports(case)][-1]["result"]["error"] for case in CASES if case.path[-1][0] == kind}


def test_a_proposal_is_refused_with_each_error_that_a_controller_has_for_it() -> None:
    assert errors_of("alter_partition") == {
        rules.NONE,
        rules.UNKNOWN_TOPIC_OR_PARTITION,
        errors.NOT_CONTROLLER,
        rules.INVALID_REQUEST,
        rules.FENCED_LEADER_EPOCH,
        errors.STALE_BROKER_EPOCH,
        rules.INVALID_UPDATE_VERSION,
        rules.INELIGIBLE_REPLICA,
        rules.UNKNOWN_TOPIC_ID,
    }


def test_every_path_is_apart_and_ends_with_a_response() -> None:
    assert len({case.path for case in CASES}) == len(CASES) == len({case.name for case in CASES})
    assert all(len([*RIGHT.reports(case)]) == len(case.path) + 1 for case in CASES)


def test_other_requests_are_refused_and_taken() -> None:
    for kind in ("elect_leaders", "reassign", "register", "heartbeat", "unregister", "assign_directory", "delete_topic"):
        assert errors_of(kind) > {rules.NONE}, kind


def test_a_cancel_elects_a_replica_outside_the_isr_only_where_the_topic_allows_it() -> None:
    """The replicas before are 1 and 4, 4 is up: refused, then elected uncleanly; without ELR, nobody leads."""
    beginnings = (TAKEN_OVER, NOBODY_TAKES_OVER)
    cases = [case for case in CASES if case.path[-1] == CANCEL and any(case.path[: len(one)] == one for one in beginnings)]
    seen = [[*RIGHT.reports(case)][-1] for case in cases]
    leaders = [(report["result"]["error"], report["partitions"]["t-0"]["leader"]) for report in seen]
    assert leaders == [(errors.INVALID_REPLICA_ASSIGNMENT, 2), (rules.NONE, 4), (rules.NONE, -1)]
