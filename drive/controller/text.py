"""A difference as text: every step, what was expected and what was seen side by side, the switches that do the same."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidegauge.drive.controller.contract import REPORTED, STEPS, Difference, step_line
from tidegauge.drive.runner.text import value_text

FEW = 4


def story(
    found: Difference,
    same: Sequence[Sequence[object]],
    log: Sequence[str] = (),
    names: tuple[str, str] = ("expected", "seen"),
) -> str:
    """The whole story. `same`: what does the same, each as its text; `log`: what the controller has logged about it;
    `names` is what stands above the two sides."""
    opening = found.case.opening
    lines = [f"DIFFERS after {found.at} steps, in {', '.join(found.fields)}"]
    lines.append(
        f"  metadata.version {opening.metadata_version}, ELR {'on' if opening.elr else 'off'}, "
        f"min.insync.replicas {opening.min_insync_replicas}"
    )
    lines += [f"  {at:>2}  {step_line(one)}" for at, one in enumerate(found.case.path[: found.at], start=1)]
    lines += _side_by_side(found, names)
    if found.step is not None:
        lines.append(f"  {found.step[0]}: {STEPS[found.step[0]].says}")
    lines += [f"  same as   {line}" for line in _suspects(same)]
    lines += [f"  log       {line}" for line in log]
    return "\n".join(lines)


def _side_by_side(found: Difference, names: tuple[str, str]) -> Iterator[str]:
    """What differs, value by value."""
    rows = [
        (name, value_text(expected), value_text(seen))
        for field in REPORTED
        if field in found.fields
        for name, expected, seen in _apart(field, found.expected.get(field), found.seen.get(field))
    ]
    name_width = max((len(name) for name, _, _ in rows), default=0)
    width = max(map(len, (names[0], *(expected for _, expected, _ in rows))))
    yield f"      {'':<{name_width}}  {names[0]:<{width}}  {names[1]}"
    for name, expected, seen in rows:
        yield f"    ! {name:<{name_width}}  {expected:<{width}}  {seen}"


def _apart(name: str, expected: Any, seen: Any) -> Iterator[tuple[str, Any, Any]]:
    """The innermost values that differ, each with its place."""
    if expected == seen:
        return
    if not (isinstance(expected, Mapping) and isinstance(seen, Mapping)):
        yield name, expected, seen
        return
    for key in sorted({*expected, *seen}, key=str):
        yield from _apart(f"{name} {key}", expected.get(key), seen.get(key))


def _suspects(same: Sequence[Sequence[object]]) -> Iterator[str]:
    if not same:
        yield "no known switch, alone or with another"
    for suspects in same[:FEW]:
        yield " with ".join(map(str, suspects))
    if len(same) > FEW:
        yield f"and {len(same) - FEW} more"
