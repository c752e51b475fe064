"""Forking execution: a lemma is run once along every path its rules can take, and its goals are proved on each.

A *lemma* is a Python function of a `ProofPath`: it makes symbolic values, assumes premises, calls rules of `impl.rules` and
sets goals. A *path* is one run of it, with one sequence of *decisions*: the truth values it took for symbolic conditions. A
*goal* is a z3 formula that must follow from the assumptions of its path; a *counter-model* is values that break it. The
result of `explore` is a `GoalTally`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import z3

from tidegauge.spec.proofs.engine.symbolic import Bool, Int, OutOfRangeError, Seq, evaluate, symbolic_rules, term

# The execution of a lemma along every path.
#
# 1. Where the byte code of a rule needs the truth of a symbolic bool, `ProofPath.decide` picks a side that the solver finds
#    possible and queues the other one; the lemma runs again for it. No state is copied, no path is missed.
# 2. A branch the solver cannot decide is taken on both sides: that can cost time, never a case.
# 3. An index outside its sequence, an endless loop or an exception is a failed goal with a counter-model, like any other.
# 4. A counter-model is the least one: integers first, then truth values, each in the order they were made. So its text does
#    not depend on the process or on earlier proofs.


DECISION_LIMIT = 2000
"""Reads and decisions on one path before it counts as endless; the longest honest path takes under 300."""

BRANCH_EFFORT = 1_000_000
GOAL_EFFORT = 20_000_000
"""The effort that the solver may spend on one query with quantifiers, in its own units (`rlimit`, millions a second).

Not seconds: a verdict must not depend on the load of the machine. The hardest goal takes 0.7 million.
"""


LARGEST = 2**62
"""Offsets and epochs of Kafka are smaller."""


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
    """The results of the paths of one lemma, by the name of the goal; one may be proved on a path and refuted on another."""

    paths: int = 0
    """how many paths can happen"""
    proved: dict[str, int] = field(default_factory=dict)
    """goal -> on how many paths it is proved"""
    refuted: dict[str, CounterModel] = field(default_factory=dict)
    """goal -> its first counter-model"""
    unknown: dict[str, str] = field(default_factory=dict)
    """goal -> why the solver could not decide it"""
    premises: set[str] = field(default_factory=set)
    """names of the premises that were assumed or dropped"""
    called: set[str] = field(default_factory=set)
    """names of the rules that were called"""

    def merge(self, other: "GoalTally") -> None:
        """Add the results of another lemma or another size."""
        self.paths += other.paths
        self.premises |= other.premises
        self.called |= other.called
        for name, count in other.proved.items():
            self.proved[name] = self.proved.get(name, 0) + count
        for name, model in other.refuted.items():
            self.refuted.setdefault(name, model)
        for name, reason in other.unknown.items():
            self.unknown.setdefault(name, reason)


class ProofPath:
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
        """Begin the execution whose first decisions are `prefix`; the later ones are made as the lemma runs.

        `namespace` has the rules by name. `dropped` names premises to leave out. `memory` keeps terms from path to path
        (`once`). `contracts` replaces helpers of the rules by name; with them there are statements with quantifiers.
        """
        self.namespace = namespace
        self.prefix = prefix
        self.memory = {} if memory is None else memory
        self.dropped = dropped
        self.decisions: list[bool] = []
        # A prefix for each side of a decision that this path did not take, and that may happen.
        self.open_prefixes: list[list[bool]] = []
        self.solver = make_solver()
        self.quantified = contracts is not None
        self.rules = symbolic_rules(namespace, contracts)
        # (name, formula) to prove, (label, value) that counter-models show, and the integers and truth values of which a
        # counter-model has the least.
        self.goals: list[tuple[str, Any]] = []
        self.shown: list[tuple[str, Any]] = []
        self.variables: list[Any] = []
        self.truths: list[Any] = []
        self.premises: set[str] = set()
        self.called: set[str] = set()
        self._decided: dict[int, tuple[Any, bool]] = {}  # by z3's id of the condition
        self._steps = 0
        self._fresh = 0
        self._patterns: list[Any] = []

    # -- values

    def lift(self, value: Any) -> Any:
        """Turn a z3 term into a value that a rule can work with, and a list into a sequence."""
        if isinstance(value, z3.BoolRef):
            return Bool(self, value)
        if isinstance(value, z3.ExprRef):
            return Int(self, value)
        if isinstance(value, (list, tuple)):
            return Seq(self, value)
        return value

    def integer(self, name: str, low: int | None = None, show: bool = True) -> Any:
        """Return a fresh integer with the lower bound `low`, None for none. `show`: whether counter-models show it."""
        value = z3.Int(name)
        self.variables.append(value)
        if low is not None:
            self.solver.add(value >= low)
        if show:
            self.shown.append((name, value))
        return value

    def fresh(self, name: str) -> Any:
        """Return an integer for use inside a proof, with a name of its own on this path."""
        self._fresh += 1
        return z3.Int(f"{name}!{self._fresh}")

    def forall(self, variables: Sequence[Any], condition: Any, *triggers: Any) -> None:
        """Assume a condition for all values of `variables`; the solver uses it for values with which all `triggers` occur.

        A trigger is a term that has some of the variables in it, such as f(i).
        """
        pattern = z3.MultiPattern(*triggers)
        statement = z3.ForAll(list(variables), condition, patterns=[pattern])
        # z3py frees the parts of a pattern that it does not hold itself, so they are kept alive here.
        self._patterns.append((triggers, pattern, statement))
        self.solver.add(statement)

    def boolean(self, name: str) -> Any:
        """Return a fresh truth value, which counter-models show."""
        value = z3.Bool(name)
        self.truths.append(value)
        self.shown.append((name, value))
        return value

    def integers(self, name: str, count: int, low: int | None = None) -> list[Any]:
        """Return a list of fresh integers, which counter-models show as one."""
        members = [self.integer(f"{name}{i}", low, show=False) for i in range(count)]
        self.shown.append((name, members))
        return members

    def show(self, name: str, value: Any) -> None:
        """Show a value in counter-models: a term, a list of terms, or an object with `describe(model)`."""
        self.shown.append((name, value))

    # -- execution

    def call(self, rule: str, *arguments: Any) -> Any:
        """Run the rule of that name, its own byte code, on terms; return its result, or a tuple of results, as terms.

        A result that does not depend on a term is a plain number or truth value. The run may fork the path.
        """
        self.called.add(rule)
        result = self.rules[rule](*[self.lift(a) for a in arguments])
        return tuple(term(r) for r in result) if isinstance(result, tuple) else term(result)

    def count_step(self) -> None:
        """Count a read or decision, to stop a rule that does not end."""
        self._steps += 1
        if self._steps > DECISION_LIMIT:
            raise EndlessLoopError(f"more than {DECISION_LIMIT} reads and decisions")

    def decide(self, condition: Any) -> bool:
        """Return which truth value this path takes for a condition, and assume it; queue the other one if it is possible."""
        self.count_step()
        if isinstance(condition, bool):
            return condition
        # A rule may compare the same two values twice: a second branch on them would only double the paths.
        decided = self._decided.get(condition.get_id())
        if decided is not None:
            return decided[1]
        position = len(self.decisions)
        # An earlier path has run along this prefix: the lemma decides the same conditions in the same order.
        if position < len(self.prefix):
            choice = self.prefix[position]
        else:
            can_hold = self.possible(condition)
            can_fail = self.possible(z3.Not(condition))
            if not can_hold and not can_fail:
                raise ImpossiblePathError
            # The side that holds goes on here; the other one is run from the beginning with this prefix (no state is
            # copied).
            if can_hold and can_fail:
                self.open_prefixes.append([*self.decisions, False])
            choice = can_hold
        self.decisions.append(choice)
        self._decided[condition.get_id()] = (condition, choice)  # keeps the term alive, so its id stays its own
        self.solver.add(condition if choice else z3.Not(condition))
        return choice

    def possible(self, condition: Any) -> bool:
        """Return whether a condition may hold under the assumptions: true unless the solver proves that it cannot."""
        # With quantifiers it seldom knows, so it gets little effort; "unknown" counts as possible.
        if self.quantified:
            self.solver.set("rlimit", BRANCH_EFFORT)
        possible = bool(self.solver.check(condition) != z3.unsat)
        if self.quantified:
            self.solver.set("rlimit", GOAL_EFFORT)
        return possible

    def assume(self, condition: Any, premise: str = "") -> None:
        """Assume a condition on this path. One with the name of a `premise` can be dropped, to show that it is needed."""
        if premise:
            self.premises.add(premise)
        if premise not in self.dropped:
            self.solver.add(condition)

    def drops(self, premise: str) -> bool:
        """Return whether this run goes without a premise: the caller then does what only the premise excludes.

        The name is noted as a premise of the lemma, as `assume` does.
        """
        self.premises.add(premise)
        return premise in self.dropped

    def once(self, key: str, build: Callable[[], Any]) -> Any:
        """Return the term that `build` makes, kept under `key`: built on the first path only, and used again on the others.

        It would be the same there: z3 knows variables by their names, and a lemma gives the same names on each path.
        """
        if key not in self.memory:
            self.memory[key] = build()
        return self.memory[key]

    def goal(self, name: str, condition: Any) -> None:
        """Set a statement to prove on this path and on every continuation of it."""
        self.goals.append((name, z3.BoolVal(condition) if isinstance(condition, bool) else condition))


def explore(
    body: Callable[[ProofPath], None],
    namespace: Mapping[str, Any],
    dropped: frozenset[str] = frozenset(),
    *,
    make_solver: Callable[[], Any] = z3.Solver,
    stop_at_first: bool = False,
    contracts: Mapping[str, Any] | None = None,
) -> GoalTally:
    """Run the lemma `body` along every possible path and prove its goals on each.

    `namespace` has the rules by name, `dropped` names premises to leave out, `contracts` replaces helpers of the rules.
    `stop_at_first`: one counter-model is enough.
    """
    tally = GoalTally()
    # Paths still to run, each as its first decisions. The first path has none.
    waiting: list[list[bool]] = [[]]
    memory: dict[str, Any] = {}
    while waiting:
        path = ProofPath(namespace, waiting.pop(), dropped, make_solver=make_solver, memory=memory, contracts=contracts)
        failure = ""
        try:
            body(path)
        # Its goals are left out: on a path that cannot happen, the contradiction alone would prove them.
        except ImpossiblePathError:
            waiting.extend(path.open_prefixes)
            continue
        except OutOfRangeError as error:
            failure = f"every index in range: {error}"
        except EndlessLoopError as error:
            failure = f"terminates: {error}"
        except (TypeError, NameError, ValueError, AttributeError, z3.Z3Exception) as error:
            failure = f"runs: {type(error).__name__}: {error}"
        waiting.extend(path.open_prefixes)
        tally.premises |= path.premises
        tally.called |= path.called
        # A false goal on this path: the solver then finds the arguments with which the rule fails.
        if failure:
            path.goal(failure, z3.BoolVal(False))
        if _settle(path, tally):
            tally.paths += 1
        if stop_at_first and tally.refuted:
            break
    return tally


def _settle(path: ProofPath, tally: GoalTally) -> bool:
    """Prove the goals of a finished path and count the results in `tally`; return False when the path cannot happen.

    A goal is proved where its negation cannot hold under the assumptions: the solver says `unsat`.
    """
    # Premises that were assumed after the last branch may contradict it.
    if not path.possible(z3.BoolVal(True)):
        return False
    # One counter-model per goal is enough, from whatever path.
    remaining = [(name, goal) for name, goal in path.goals if name not in tally.refuted]
    # Without quantifiers one query for all goals is cheaper; with them each goal is easier alone.
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


def _counter_model(path: ProofPath, name: str, goal: Any) -> CounterModel:
    """Return the least model that breaks `goal`: small numbers read better, and only one model is least.

    Its values are within the smallest of a few bounds that allows a model, and made least one after the other.
    """
    path.solver.push()
    path.solver.add(z3.Not(goal))
    # Within a bound there are few models, so that the least is found soon; without one, the numbers of z3 are arbitrary.
    for bound in (2, 3, 5, 10, 100):
        limits = [z3.And(v >= -1, v <= bound) for v in path.variables]
        if path.solver.check(*limits) == z3.sat:
            path.solver.add(*limits)
            break
    # If no bound fits, any model is taken: there is one, as the goal was found to be refuted.
    path.solver.check()
    model = path.solver.model()
    for value in path.variables:
        # One value after the other: each is fixed before the next is made small. Where the solver finds no least value it
        # stays as in the model.
        least = _least(path.solver, value)
        path.solver.add(value == (model.eval(value, model_completion=True) if least is None else least))
    for truth in path.truths:
        # True only where false is impossible: the same text in every process.
        path.solver.add(truth == (path.solver.check(z3.Not(truth)) != z3.sat))
    # If the solver cannot decide any more, the model from before stays, which need not be the least.
    if path.solver.check() == z3.sat:
        model = path.solver.model()
    values = {label: evaluate(model, value) for label, value in path.shown}
    path.solver.pop()
    return CounterModel(name, [f"{label}: {value}" for label, value in values.items()], values)


def _least(solver: Any, value: Any) -> int | None:
    """Return the value nearest to zero that the solver finds possible, the positive one of two; None when it finds none."""
    low, high = 0, 0
    # Double the bound, then halve the interval: a solver checks bounds, it does not minimize. `low` and `high` bound the
    # distance from zero.
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


class ProofVerdict(Enum):
    """The verdict on a goal: no model breaks it, one does, or the solver could not decide."""

    PROVED = "PROVED"
    COUNTER_MODEL = "COUNTER-MODEL"
    NOT_PROVED = "NOT PROVED"

    @property
    def exit_code(self) -> int:
        """Exit code of the command line: 0 proved, 1 refuted, 3 undecided."""
        return {ProofVerdict.PROVED: 0, ProofVerdict.COUNTER_MODEL: 1, ProofVerdict.NOT_PROVED: 3}[self]


@dataclass(frozen=True)
class GoalResult:
    """One goal of one lemma, over all sizes and paths."""

    lemma: str
    name: str
    verdict: ProofVerdict
    checks: int = 0
    """on how many paths it is proved"""
    counter_model: CounterModel | None = None
    """values that break it; of a PROVED goal that removes a premise: values that break another goal without the premise"""
    reason: str = ""
    """why it is not proved"""

    def describe(self) -> list[str]:
        """Return the goal as lines of text, with a counter-model value by value."""
        lines = [f"{self.verdict.value:13}  {self.lemma}: {self.name}"]
        if self.reason:
            lines.append(f"{'':15}{self.reason}")
        if self.counter_model is not None:
            lines.extend(f"{'':15}{line}" for line in self.counter_model.lines)
        return lines


@dataclass(frozen=True)
class GroupResult:
    """The results of one group of lemmas, which are proved together in one process."""

    name: str
    title: str
    method: str
    verdict: ProofVerdict
    goals: tuple[GoalResult, ...] = ()
    paths: int = 0
    seconds: float = 0.0
    reason: str = ""
    failures: tuple[GoalResult, ...] = field(default=())

    def describe(self, verbose: bool = False) -> list[str]:
        """Return the result as lines of text: one for the group, then those of each failed goal.

        `verbose` adds the proved goals that have a counter-model: they show what is lost without a premise.
        """
        size = f"{len(self.goals)} goals, {self.paths} paths, {self.method}, {self.seconds:.1f} s"
        lines = [f"{self.verdict.value:13}  {self.name}: {self.title} ({size})"]
        if self.reason:
            lines.append(f"{'':15}{self.reason}")
        witnesses = tuple(g for g in self.goals if g.verdict is ProofVerdict.PROVED and g.counter_model is not None)
        for goal in (*self.failures, *(witnesses if verbose else ())):
            lines.extend(f"  {line}" for line in goal.describe())
        return lines


def overall(verdicts: list[ProofVerdict]) -> ProofVerdict:
    """Combine verdicts: a counter-model outweighs an undecided goal, which outweighs a proof; no verdict is undecided."""
    if ProofVerdict.COUNTER_MODEL in verdicts:
        return ProofVerdict.COUNTER_MODEL
    if not verdicts or ProofVerdict.NOT_PROVED in verdicts:
        return ProofVerdict.NOT_PROVED
    return ProofVerdict.PROVED
