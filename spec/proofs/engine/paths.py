"""Forking execution: a lemma is run once along every path its rules can take, and its goals are proved on each.

Rules of this file

1. Where the byte code of a rule needs the truth of a symbolic bool, `Path.decide` picks a side the solver holds possible
   and queues the other one; the lemma is run again for it. No state is copied, no path is missed.
2. A branch the solver cannot decide is taken on both sides: that can cost time, never a case.
3. An index outside its sequence, an endless loop or an exception is a failed goal with a counter-model, like any other.
4. A counter-model is the least one, value by value in the order they were made: the same text in every process, whatever
   the solver had proved before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from tidegauge.spec.proofs.engine.symbolic import Bool, Int, OutOfRangeError, Seq, evaluate, symbolic_rules, term

DECISION_LIMIT = 2000
"""Reads and decisions on one path before it counts as endless; the longest honest path takes under 300."""

BRANCH_EFFORT = 1_000_000
GOAL_EFFORT = 20_000_000
"""What the solver may spend on one question where there are quantifiers, in its own units (`rlimit`, millions a second).

Not seconds: a verdict must not depend on what else the machine does. The hardest goal takes 0.7 million.
"""


LARGEST = 2**62
"""Offsets and epochs of Kafka stay below."""


class EndlessLoopError(Exception):
    """A rule passed DECISION_LIMIT."""


class ImpossiblePathError(Exception):
    """The assumptions of a path contradict each other: nothing to prove on it."""


@dataclass
class CounterModel:
    """Values that satisfy every premise and break a goal, as lines of text and as plain data."""

    goal: str
    lines: list[str]
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class GoalTally:
    """What the paths of one lemma showed, goal by goal."""

    paths: int = 0
    proved: dict[str, int] = field(default_factory=dict)
    refuted: dict[str, CounterModel] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    premises: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)

    def merge(self, other: "GoalTally") -> None:
        """Adds what another lemma or another size showed."""
        self.paths += other.paths
        self.premises |= other.premises
        self.called |= other.called
        for name, count in other.proved.items():
            self.proved[name] = self.proved.get(name, 0) + count
        for name, model in other.refuted.items():
            self.refuted.setdefault(name, model)
        for name, reason in other.unknown.items():
            self.unknown.setdefault(name, reason)


class Path:
    """One execution of a lemma along one sequence of decisions."""

    def __init__(
        self,
        namespace: Mapping[str, Any],
        prefix: Sequence[bool] = (),
        dropped: frozenset[str] = frozenset(),
        *,
        make_solver: Callable[[], Any] = z3.Solver,
        memory: dict[str, Any] | None = None,
        contracts: Mapping[str, Any] | None = None,
    ) -> None:
        self.namespace = namespace
        self.prefix = prefix
        self.memory = {} if memory is None else memory
        self.dropped = dropped
        self.taken: list[bool] = []
        self.open: list[list[bool]] = []
        self.solver = make_solver()
        self.quantified = contracts is not None
        self.rules = symbolic_rules(namespace, contracts)
        self.goals: list[tuple[str, Any]] = []
        self.shown: list[tuple[str, Any]] = []
        self.variables: list[Any] = []
        self.truths: list[Any] = []
        self.premises: set[str] = set()
        self.called: set[str] = set()
        self._decided: dict[int, tuple[Any, bool]] = {}
        self._steps = 0
        self._fresh = 0
        self._held: list[Any] = []

    # -- values

    def lift(self, value: Any) -> Any:
        """A z3 term becomes a value a rule can work with; lists become sequences."""
        if isinstance(value, z3.BoolRef):
            return Bool(self, value)
        if isinstance(value, z3.ExprRef):
            return Int(self, value)
        if isinstance(value, (list, tuple)):
            return Seq(self, value)
        return value

    def integer(self, name: str, low: int | None = None, show: bool = True) -> Any:
        """A fresh integer, unbounded above; `low` is its lower bound."""
        value = z3.Int(name)
        self.variables.append(value)
        if low is not None:
            self.solver.add(value >= low)
        if show:
            self.shown.append((name, value))
        return value

    def fresh(self, name: str) -> Any:
        """An integer for use inside a proof, with a name of its own on this path."""
        self._fresh += 1
        return z3.Int(f"{name}!{self._fresh}")

    def forall(self, variables: Sequence[Any], condition: Any, *triggers: Any) -> None:
        """Assumes a statement about all integers, used wherever all `triggers` occur.

        z3py frees the parts of a pattern it does not hold, so this path holds them.
        """
        pattern = z3.MultiPattern(*triggers)
        statement = z3.ForAll(list(variables), condition, patterns=[pattern])
        self._held.append((triggers, pattern, statement))
        self.solver.add(statement)

    def boolean(self, name: str) -> Any:
        """A fresh truth value."""
        value = z3.Bool(name)
        self.truths.append(value)
        self.shown.append((name, value))
        return value

    def integers(self, name: str, count: int, low: int | None = None) -> list[Any]:
        """A list of fresh integers, shown as one."""
        members = [self.integer(f"{name}{i}", low, show=False) for i in range(count)]
        self.shown.append((name, members))
        return members

    def show(self, name: str, value: Any) -> None:
        """Names a value for counter-models: a term, a list of terms, or an object with `describe(model)`."""
        self.shown.append((name, value))

    # -- execution

    def call(self, rule: str, *arguments: Any) -> Any:
        """Runs the rule's byte code on terms; the result comes back as terms."""
        self.called.add(rule)
        result = self.rules[rule](*[self.lift(a) for a in arguments])
        return tuple(term(r) for r in result) if isinstance(result, tuple) else term(result)

    def count_step(self) -> None:
        """Guards against a rule that does not end."""
        self._steps += 1
        if self._steps > DECISION_LIMIT:
            raise EndlessLoopError(f"more than {DECISION_LIMIT} reads and decisions")

    def decide(self, condition: Any) -> bool:
        """Which side of a branch this path takes; the other side is queued when it is possible."""
        self.count_step()
        if isinstance(condition, bool):
            return condition
        known = self._decided.get(condition.get_id())
        if known is not None:
            return known[1]
        position = len(self.taken)
        if position < len(self.prefix):
            choice = self.prefix[position]
        else:
            can_hold = self.possible(condition)
            can_fail = self.possible(z3.Not(condition))
            if not can_hold and not can_fail:
                raise ImpossiblePathError
            if can_hold and can_fail:
                self.open.append([*self.taken, False])
            choice = can_hold
        self.taken.append(choice)
        self._decided[condition.get_id()] = (condition, choice)  # keeps the term alive, so its id stays its own
        self.solver.add(condition if choice else z3.Not(condition))
        return choice

    def possible(self, condition: Any) -> bool:
        """Whether a branch may be taken. With quantifiers the solver seldom knows, so it is not given long."""
        if self.quantified:
            self.solver.set("rlimit", BRANCH_EFFORT)
        possible = bool(self.solver.check(condition) != z3.unsat)
        if self.quantified:
            self.solver.set("rlimit", GOAL_EFFORT)
        return possible

    def assume(self, condition: Any, premise: str = "") -> None:
        """A premise. One with a name can be dropped, to see what is lost without it."""
        if premise:
            self.premises.add(premise)
        if premise not in self.dropped:
            self.solver.add(condition)

    def drops(self, premise: str) -> bool:
        """Name a premise that is no condition to assume, and return whether this run is without it."""
        self.premises.add(premise)
        return premise in self.dropped

    def once(self, key: str, build: Callable[[], Any]) -> Any:
        """A term over the fresh values alone: the same on every path, so it is built on the first one only."""
        if key not in self.memory:
            self.memory[key] = build()
        return self.memory[key]

    def goal(self, name: str, condition: Any) -> None:
        """A statement to prove on this path and on every continuation of it."""
        self.goals.append((name, z3.BoolVal(condition) if isinstance(condition, bool) else condition))


def explore(
    body: Callable[[Path], None],
    namespace: Mapping[str, Any],
    dropped: frozenset[str] = frozenset(),
    *,
    make_solver: Callable[[], Any] = z3.Solver,
    stop_at_first: bool = False,
    contracts: Mapping[str, Any] | None = None,
) -> GoalTally:
    """Runs `body` along every possible path and proves its goals on each."""
    tally = GoalTally()
    waiting: list[list[bool]] = [[]]
    memory: dict[str, Any] = {}
    while waiting:
        path = Path(namespace, waiting.pop(), dropped, make_solver=make_solver, memory=memory, contracts=contracts)
        failure = ""
        try:
            body(path)
        except ImpossiblePathError:
            waiting.extend(path.open)
            continue
        except OutOfRangeError as error:
            failure = f"every index in range: {error}"
        except EndlessLoopError as error:
            failure = f"terminates: {error}"
        except (TypeError, NameError, ValueError, AttributeError, z3.Z3Exception) as error:
            failure = f"runs: {type(error).__name__}: {error}"
        waiting.extend(path.open)
        tally.premises |= path.premises
        tally.called |= path.called
        if failure:
            path.goal(failure, z3.BoolVal(False))
        if _settle(path, tally):
            tally.paths += 1
        if stop_at_first and tally.refuted:
            break
    return tally


def _settle(path: Path, tally: GoalTally) -> bool:
    """Proves the goals of a finished path; False when the path cannot happen.

    Without quantifiers one query for all goals is cheaper; with them each goal is easier alone.
    """
    if not path.possible(z3.BoolVal(True)):
        return False
    remaining = [(name, goal) for name, goal in path.goals if name not in tally.refuted]
    all_at_once = z3.Not(z3.And([goal for _, goal in remaining]))
    if remaining and not path.quantified and path.solver.check(all_at_once) == z3.unsat:
        for name, _ in remaining:
            tally.proved[name] = tally.proved.get(name, 0) + 1
        return True
    for name, goal in remaining:
        response = path.solver.check(z3.Not(goal))
        if response == z3.unsat:
            tally.proved[name] = tally.proved.get(name, 0) + 1
        elif response == z3.sat:
            tally.refuted.setdefault(name, _counter_model(path, name, goal))
        else:
            tally.unknown.setdefault(name, path.solver.reason_unknown())
    return True


def _counter_model(path: Path, name: str, goal: Any) -> CounterModel:
    """The least model within the smallest of a few bounds: small numbers read better, and there is only one such model."""
    path.solver.push()
    path.solver.add(z3.Not(goal))
    for bound in (2, 3, 5, 10, 100):
        limits = [z3.And(v >= -1, v <= bound) for v in path.variables]
        if path.solver.check(*limits) == z3.sat:
            path.solver.add(*limits)
            break
    path.solver.check()
    model = path.solver.model()
    for value in path.variables:
        least = _least(path.solver, value)
        path.solver.add(value == (model.eval(value, model_completion=True) if least is None else least))
    for truth in path.truths:
        path.solver.add(truth == (path.solver.check(z3.Not(truth)) != z3.sat))
    if path.solver.check() == z3.sat:
        model = path.solver.model()
    values = {label: evaluate(model, value) for label, value in path.shown}
    path.solver.pop()
    return CounterModel(name, [f"{label}: {value}" for label, value in values.items()], values)


def _least(solver: Any, value: Any) -> int | None:
    """The value nearest to zero that the solver holds possible, the positive one of two; None when it finds none."""
    low, high = 0, 0
    while solver.check(value >= -high, value <= high) != z3.sat:
        if high > LARGEST:
            return None
        low, high = high + 1, max(1, 2 * high)
    while low < high:
        middle = (low + high) // 2
        if solver.check(value >= -middle, value <= middle) == z3.sat:
            high = middle
        else:
            low = middle + 1
    return low if solver.check(value == low) == z3.sat else -low
