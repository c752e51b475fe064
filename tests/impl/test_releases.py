"""Releases: the switches have the values the history of Kafka gives them."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.conformance.judge.rulebook import known_bugs
from tidegauge.impl.profiles import (
    ELR,
    ELR_REPAIRED,
    FETCH_TRUNCATION,
    KIP101,
    KIP279,
    KIP320,
    PROFILES,
    SAFE,
    UNSAFE,
    Profile,
)
from tidegauge.impl.releases import EVERY_RELEASE, SINCE, parse_release, profile_named, profile_of_release
from tidegauge.util.errors import UsageError


@pytest.mark.parametrize(
    ("switch", "before", "after", "values"),
    [
        ("offsets_for_leader_epoch", "0.10.2", "0.11.0", (False, True)),
        ("epoch_in_response", "1.1.1", "2.0.0", (False, True)),
        ("initial_offset", "0.10.2", "0.11.0", ("hw", "log-end")),
        ("initial_offset", "1.0.2", "1.1.0", ("log-end", "hw")),
        ("initial_offset", "2.7.2", "2.8.0", ("hw", "log-end-or-hw")),
        ("strict_cache", "2.0.0", "2.0.1", (False, True)),
        ("join_needs_epoch_start", "2.0.0", "2.0.1", (False, True)),
        ("exits_out_of_range", "2.0.0", "2.0.1", (True, False)),
        ("fetcher_restart", "2.0.0", "2.0.1", ("leader", "leader-or-jump")),
        ("fetcher_restart", "2.0.1", "2.1.0", ("leader-or-jump", "leader-or-epoch")),
        ("fetcher_restart", "3.2.3", "3.3.0", ("leader-or-epoch", "epoch")),
        ("guards_partition_epoch", "3.2.3", "3.3.0", (False, True)),
        ("fencing", "2.0.1", "2.1.0", (False, True)),
        ("epoch_responses_checked", "2.1.0", "2.1.1", (False, True)),
        ("latest_needs_hw", "2.1.1", "2.2.0", (False, True)),
        ("unknown_producer", "0.11.0", "1.0.0", ("out-of-order", "unknown")),
        ("unknown_producer", "2.4.1", "2.5.0", ("unknown", "taken")),
        ("old_batch_is_duplicate", "0.11.0", "1.0.0", (False, True)),
        ("old_batch_is_duplicate", "1.0.1", "1.0.2", (True, False)),
        ("fails_partitions", "2.2.2", "2.3.0", (False, True)),
        ("truncation_lowers_hw", "2.3.1", "2.4.0", (False, True)),
        ("hw_wakes_followers", "2.3.1", "2.4.0", (False, True)),
        ("hw_wakes_followers", "2.5.1", "2.6.0", (True, False)),
        ("fences_by_epoch", "2.4.1", "2.5.0", (False, True)),
        ("truncation_clears_cache", "2.6.0", "2.6.1", (False, True)),
        ("counts_maximal_isr", "2.6.3", "2.7.0", (False, True)),
        ("hw_after_isr_response", "2.6.3", "2.7.0", (True, False)),
        ("hw_after_isr_response", "3.0.2", "3.1.0", (False, True)),
        ("truncation_on_fetch", "2.7.2", "2.8.0", (False, True)),
        ("out_of_range_first", "2.7.1", "2.7.2", (False, True)),
        ("out_of_range_first", "2.8.0", "2.8.1", (False, True)),
        ("applies_diverging", "3.4.0", "3.4.1", (True, False)),
        ("keeps_last_epoch", "3.5.0", "3.5.1", (True, False)),
        ("keeps_last_epoch", "3.6.2", "3.7.0", (False, True)),
        ("eligibility", "3.2.3", "3.3.0", ("alive", "unfenced")),
        ("eligibility", "3.4.1", "3.5.0", ("unfenced", "incarnation")),
        ("epoch_bump_on_shrink", "3.5.2", "3.6.0", (True, False)),
        ("counts_only_eligible", "3.5.2", "3.6.0", (False, True)),
        ("blocks_under_min_isr", "3.6.2", "3.7.0", (False, True)),
        ("rejects_stale_fetch", "3.6.2", "3.7.0", (False, True)),
        ("cache_truncation_queued", "3.7.2", "3.8.0", (False, True)),
        ("response_epoch_checked", "3.9.0", "3.9.1", (False, True)),
        ("response_epoch_checked", "4.0.0", "4.0.1", (False, True)),
        ("batch_epoch_filter", "4.0.0", "4.0.1", (False, True)),
        ("hw_rounded_to_batches", "3.9.2", "4.0.0", (False, True)),
        ("registration_leaves_isr", "3.9.2", "4.0.0", (False, True)),
        ("delay_restarts", "3.9.2", "4.0.0", (False, True)),
        ("elr", "4.0.2", "4.1.0", (False, True)),
        ("completes_by_adding", "3.7.2", "3.8.0", (True, False)),
        ("fewer_wait_for_all", "3.7.2", "3.8.0", (False, True)),
        ("amends_registration", "3.8.1", "3.9.0", (False, True)),
        ("unclean_by_config", "3.8.1", "3.9.0", (False, True)),
        ("fenced_has_session", "3.9.2", "4.0.0", (False, True)),
        ("failover_renews_fenced", "3.9.2", "4.0.0", (False, True)),
        ("failover_renews_fenced", "4.0.2", "4.1.0", (True, False)),
        ("elects_fenced_last_known", "4.0.2", "4.1.0", (True, False)),
        ("notes_no_leader", "4.1.0", "4.1.1", (True, False)),
        ("completes_by_adding", "4.2.2", "4.3.0", (False, True)),
    ],
)
def test_a_switch_turned_in_its_release(switch: str, before: str, after: str, values: tuple[object, object]) -> None:
    """The last release before, and the first with it."""
    assert (getattr(profile_of_release(before), switch), getattr(profile_of_release(after), switch)) == values


def test_the_newest_release_is_todays_profile_with_elr() -> None:
    """Every switch, not only those that a test names; 4.3 changed two more of the controller's, 4.4 none."""
    assert profile_of_release("4.4.0")._replace(name="elr") == profile_of_release("4.3.1")._replace(name="elr") == ELR
    since = {
        "completes_by_adding": True,
        "assigns_dirs_without_elr": False,
        "failover_renews_fenced": False,
        "elects_fenced_last_known": False,
        "notes_no_leader": False,
    }
    assert profile_of_release("4.0.2")._replace(name="fetch-truncation", **since) == FETCH_TRUNCATION


def test_every_switch_has_a_history() -> None:
    """One row each, ascending, from the start."""
    assert set(SINCE) == set(Profile._fields) - {"name"}
    for rows in SINCE.values():
        assert rows[0][0] == EVERY_RELEASE
        assert [since for since, _ in rows] == sorted({since for since, _ in rows})
        assert all(a != b for (_, a), (_, b) in pairwise(rows))


def test_generations_differ_in_truncation_and_fencing() -> None:
    """Each step adds what its KIP brought."""
    assert [KIP101.epoch_in_response, KIP279.epoch_in_response, KIP279.fencing, KIP320.fencing] == [False, True, False, True]
    assert not any(p.truncation_on_fetch for p in (KIP101, KIP279, KIP320))
    assert all(p.offsets_for_leader_epoch for p in (KIP101, KIP279, KIP320))
    assert [profile_named(name).name for name in PROFILES] == list(PROFILES)
    for release, generation in (("1.0.0", KIP101), ("2.0.0", KIP279), ("2.5.0", KIP320), ("4.0.2", FETCH_TRUNCATION)):
        of = profile_of_release(release)
        assert (of.epoch_in_response, of.fencing, of.truncation_on_fetch) == (
            generation.epoch_in_response,
            generation.fencing,
            generation.truncation_on_fetch,
        )


@pytest.mark.parametrize("text", ["", "4", "v3.6", "3.6.1.2.3", "3.x", "0.9.0", "4.5", "9.0.0"])
def test_what_is_no_known_release_is_refused(text: str) -> None:
    """With what was expected."""
    with pytest.raises(UsageError, match="release: expected"):
        profile_of_release(text)


@given(st.integers(0, 4), st.integers(0, 11), st.integers(0, 3))
def test_any_release_in_range_has_a_profile(major: int, minor: int, patch: int) -> None:
    """Or is refused as out of range."""
    text = f"{major}.{minor}.{patch}"
    try:
        version = parse_release(text)
    except UsageError:
        return
    assert profile_of_release(text).name == f"release-{text}"
    assert version == (major, minor, patch)


def test_a_safe_broker_has_none_of_the_bugs_that_are_not_fixed() -> None:
    """Neither those of brokers nor those of controllers; in all else it is today's Kafka."""
    unfixed = {switch for bug in known_bugs().values() if "Fixed" not in bug.says for switch in bug.switches}
    has = [bug.name for bug in known_bugs().values() if bug.switches and bug.is_in((9,), SAFE)]
    assert has == []
    repaired = {name for name in Profile._fields if getattr(ELR_REPAIRED, name) != getattr(ELR, name)}
    differs = {name for name in Profile._fields if getattr(SAFE, name) != getattr(FETCH_TRUNCATION, name)}
    assert differs - {"name", "elr"} <= unfixed | repaired


def test_a_generation_without_some_bugs_is_named_so() -> None:
    without = profile_named("release-4.3.1-without-F2-F3")
    assert (without.keeps_remote_leo, without.reads_equal_partition_epoch) == (False, False)
    assert without == profile_named("release-4.3.1").without(["F3", "F2"])
    assert profile_named("fetch-truncation-without-F2")._replace(name="repaired") == profile_named("repaired")
    assert profile_named("fetch-truncation-without-KAFKA-17803").hw_rounded_to_batches is False
    assert SAFE.without(UNSAFE.values()) is SAFE, "there is nothing to repair"
    for wrong in ("safe-without-F2", "fetch-truncation-without-F4", "fetch-truncation-without-", "none-without-F2"):
        with pytest.raises(UsageError, match="expected"):
            profile_named(wrong)


@pytest.mark.parametrize(
    ("name", "canonical", "changed"),
    [
        ("4.3.1+keeps_remote_leo=off", "release-4.3.1+keeps_remote_leo=off", {"keeps_remote_leo": False}),
        ("4.3.1-keeps_remote_leo", "release-4.3.1+keeps_remote_leo=off", {"keeps_remote_leo": False}),
        ("release-3.4.1+rejects_stale_fetch", "release-3.4.1+rejects_stale_fetch=on", {"rejects_stale_fetch": True}),
        (
            "safe+initial_offset=log-end-fencing+eligibility=unfenced",
            "safe+initial_offset=log-end+fencing=off+eligibility=unfenced",
            {"initial_offset": "log-end", "fencing": False, "eligibility": "unfenced"},
        ),
        ("4.3.1+elr=off-without-F2", "release-4.3.1+elr=off-without-F2", {"elr": False, "keeps_remote_leo": False}),
    ],
)
def test_a_profile_may_have_switches_changed(name: str, canonical: str, changed: dict[str, bool | str]) -> None:
    """And is called so that its name makes it again; a release needs no word before its number."""
    profile = profile_named(name)
    base = profile_named(name.partition("+")[0].partition("-keeps")[0])
    assert profile.name == canonical
    assert profile == base.switched(changed)._replace(name=canonical)
    assert profile_named(canonical) == profile


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("4.3.1+keeps_remote_le=off", "seen 'keeps_remote_le'; is it keeps_remote_leo"),
        ("4.3.1+no-such=off", "the name of a switch"),
        ("4.3.1+", "the name of a switch"),
        ("4.3.1+name=x", "the name of a switch"),
        ("4.3.1+keeps_remote_leo=yes", "keeps_remote_leo= and one of on, off; seen 'yes'"),
        ("4.3.1+eligibility=on", "one of alive, unfenced, incarnation; seen 'on'"),
        ("4.3.1-eligibility", "one of alive, unfenced, incarnation; seen 'off'"),
        ("9.3.1+elr=off", "release: expected one from"),
        ("nobody+elr=off", "profile: expected one of safe"),
    ],
)
def test_a_switch_that_is_none_or_cannot_be_so_is_refused(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        profile_named(name)
