"""The comparison of the story's table with Kafka's sources finds what the table lacks, and releases that are wrong."""

from tidegauge.story.statements import STATEMENTS
from validation.kafka_statements import HOLE, LogStatement, last_of_each_minor, reads, statements_of, wrong_releases

SCALA = '''
class Partition {
  // info("no statement")
  info(s"Shrinking ISR from ${isr.mkString(",")} to ${a(b)} (at $time). " +
    "It has %d :) replicas".format(n))
  debug("below INFO")
  stateChangeLogger.error(s"""Lost "all" of $x""", exception)
}
'''
JAVA = 'log.warn("Broker {} left: {}", id, why()); LOG.info(message); catalog.information("none");'


def test_a_statement_is_its_literals_with_a_hole_for_each_value() -> None:
    assert [statement.text for statement in statements_of(SCALA, "Partition")] == [
        f"Shrinking ISR from {HOLE} to {HOLE} (at {HOLE}). It has {HOLE} :) replicas",
        f'Lost "all" of {HOLE}',
    ]
    assert [statement.text for statement in statements_of(JAVA, "X")] == [f"Broker {HOLE} left: {HOLE}"]


def test_a_row_that_denies_a_release_that_prints_it_is_told() -> None:
    statement = LogStatement("X", f"The new leader {HOLE} is not known: has an new epoch ({HOLE}) than the current leader")
    assert not any(reads(row, statement) for row in STATEMENTS)
    statement = LogStatement("X", f"Partition {HOLE} has an new epoch ({HOLE}) than the current leader")
    assert list(wrong_releases({statement: ["2.5.1", "3.3.2"]})) == []
    assert list(wrong_releases({statement: ["2.4.1", "9.9.9"]})) == [
        "epoch-newer 'has an new epoch (': since 2.5, but 2.4.1 prints it",
        "epoch-newer 'has an new epoch (': until 3.3, but 9.9.9 prints it",
    ]


def test_the_last_patch_release_of_each_minor_one_is_compared() -> None:
    tags = iter(["0.8.2.2", "0.9.0.0", "0.9.0.1", "3.9.0-rc1", "3.10.0", "3.9.0", "3.9.1", "show"])
    assert last_of_each_minor(tags) == ["0.9.0.1", "3.9.1", "3.10.0"]
