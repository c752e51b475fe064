"""Start many JVMs sooner: loading classes is a quarter to a third of a run of one second; an archive saves most of it."""

from pathlib import Path

from tidegauge.spec.checker.java import Java
from tidegauge.spec.checker.tlc import Limits, run_tlc

# Uses every kind of expression and check once, so that the classes that evaluate it are loaded.
_MODULE = r"""---- MODULE WarmUp ----
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANT b1
VARIABLES log, up
vars == <<log, up>>
Kind(b) == CASE up[b] -> [type |-> "up", epoch |-> 0] [] OTHER -> [type |-> "down", epoch |-> -1]
Init == log = [b \in {b1} |-> <<>>] /\ up = [b \in {b1} |-> TRUE]
Write(b) == \E n \in 0..1 : /\ up[b]
                            /\ log' = [log EXCEPT ![b] = Append(@, n)]
                            /\ UNCHANGED up
Next == \E b \in {b1} : Write(b)
Spec == Init /\ [][Next]_vars
Short == \A b \in {b1} : Kind(b).type = "up" /\ Cardinality({i \in 1..Len(log[b]) : log[b][i] = 1}) < 2
Grows == [][Len(log'[b1]) > Len(log[b1])]_vars
====
"""
_CONFIG = "SPECIFICATION Spec\nCONSTANT b1 = b1\nINVARIANT Short\nPROPERTY Grows\n"


def warm_start(java: Java, directory: Path) -> tuple[str, ...]:
    """Make an archive of TLC's classes; return the flags of later runs, none where the runtime makes no archive.

    For brief runs only: an archive fits the garbage collector that it was made with.
    """
    archive = directory / "tlc.archive"
    make, use = java.archive_flags
    flags = (f"-XX:{make}={archive}",)
    limits = Limits(brief=True, until_exit=True)
    run_tlc("WarmUp", _CONFIG, extra_modules={"WarmUp.tla": _MODULE}, limits=limits, java=java, jvm_flags=flags)
    return (f"-XX:{use}={archive}",) if archive.is_file() else ()
