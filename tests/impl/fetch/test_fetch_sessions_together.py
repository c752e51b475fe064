"""Both ends of fetch sessions under schedules with losses and evictions."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.impl.fetch_session import TPS, fetch, read, wants
from tidegauge.impl.fetch import fetch_session as s
from tidegauge.impl.fetch.fetch_session import Fetches, FetchSessionCache, FetchSessionHandler
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.rules import NONE
from tidegauge.impl.topic_partition import TopicPartition


class Sessions(RuleBasedStateMachine):
    """Two followers, a leader with one slot, requests and responses that get lost, sessions that are driven out."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = FetchSessionCache(max_entries=1)
        self.handlers = [FetchSessionHandler(), FetchSessionHandler()]
        self.wanted: list[Fetches] = [wants(a=0), wants(b=0)]
        self.leader = dict.fromkeys(TPS, 0)
        self.known: list[dict[TopicPartition, int]] = [{}, {}]
        self.now = 0

    @rule(f=st.integers(0, 1), tp=st.sampled_from(TPS), offset=st.integers(0, 3))
    def want(self, f: int, tp: TopicPartition, offset: int) -> None:
        self.wanted[f] = self.wanted[f].put(tp, fetch(offset))

    @rule(f=st.integers(0, 1), tp=st.sampled_from(TPS))
    def drop(self, f: int, tp: TopicPartition) -> None:
        self.wanted[f] = self.wanted[f].without(tp)

    @rule(tp=st.sampled_from(TPS))
    def grow(self, tp: TopicPartition) -> None:
        self.leader[tp] += 1

    @rule(ms=st.sampled_from((1_000, 130_000)))
    def wait(self, ms: int) -> None:
        self.now += ms

    @rule(f=st.integers(0, 1), lost=st.sampled_from(("", "", "request", "response")))
    def exchange(self, f: int, lost: str) -> None:
        self.handlers[f], request = s.build_session_fetch(self.handlers[f], self.wanted[f])
        if request is None:
            return
        if lost == "request":
            self.handlers[f] = s.handle_error(self.handlers[f])
            return
        self.cache, context = s.new_context(self.cache, request, self.now)
        if context.error == NONE:
            assert dict(context.fetches.items()) == dict(self.wanted[f].items())
        given = FrozenMap((tp, read(self.leader[tp])) for tp in context.fetches)
        self.cache, response = s.update_and_generate_response(self.cache, context, given, self.now, is_follower=True)
        if lost == "response":
            self.handlers[f] = s.handle_error(self.handlers[f])
            return
        full_one = request.metadata.is_full
        self.handlers[f], taken = s.handle_response(self.handlers[f], response)
        assert taken is (response.error == NONE)
        if taken:
            self.known[f] = {} if full_one else {tp: hw for tp, hw in self.known[f].items() if tp in self.wanted[f]}
            self.known[f] |= {tp: one.response.hw for tp, one in response.reads.items()}
            assert self.known[f] == {tp: self.leader[tp] for tp in self.wanted[f]}

    @invariant()
    def a_session_is_what_its_follower_keeps(self) -> None:
        for handler in self.handlers:
            session = self.cache.sessions.get(handler.next_metadata.session_id)
            if session is not None and session.epoch == handler.next_metadata.epoch:
                cached = {tp: one.fetch for tp, one in session.partitions.items()}
                assert cached == dict(handler.partitions.items())

    @invariant()
    def slots_are_not_exceeded(self) -> None:
        assert len(self.cache.sessions) <= self.cache.max_entries


TestSessions = Sessions.TestCase
