"""Every check, in the order in which they are run."""

from tidegauge.drive.probe.check import Check
from tidegauge.drive.probe.checks.acks import ACKS_CHECKS
from tidegauge.drive.probe.checks.appending import APPEND_CHECKS
from tidegauge.drive.probe.checks.deleting import DELETE_CHECKS
from tidegauge.drive.probe.checks.epochs import EPOCH_CHECKS
from tidegauge.drive.probe.checks.fencing import FENCING_CHECKS
from tidegauge.drive.probe.checks.fetching import FETCH_CHECKS
from tidegauge.drive.probe.checks.offsets import OFFSET_CHECKS
from tidegauge.drive.probe.checks.producers import PRODUCER_CHECKS
from tidegauge.drive.probe.checks.sessions import SESSION_CHECKS
from tidegauge.drive.probe.checks.versions import VERSION_CHECKS

CHECKS: tuple[Check, ...] = (
    *VERSION_CHECKS,
    *FENCING_CHECKS,
    *EPOCH_CHECKS,
    *FETCH_CHECKS,
    *SESSION_CHECKS,
    *OFFSET_CHECKS,
    *ACKS_CHECKS,
    *APPEND_CHECKS,
    *PRODUCER_CHECKS,
    *DELETE_CHECKS,
)
