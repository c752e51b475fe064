"""Whether a partition gets a log with its role: the log directories of its broker decide (KIP-858).

Rules of this file

1. Only a partition that has no log asks. While every directory is online it gets one.
2. While one is offline, the log may lie there. Where metadata assigns a directory that is not online, none is made, and the
   partition goes on without one. Otherwise only a new partition gets a log; another goes offline.
3. Source: Partition#createLogInAssignedDirectoryId, LogManager#getOrCreateLog. Before 3.7 no directory was assigned.
"""

from tidegauge.impl.control.partition_registration import UNASSIGNED
from tidegauge.impl.error_codes import KAFKA_STORAGE_ERROR
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER
from tidegauge.impl.server.replica_manager import ReplicaManager


def creation_error(manager: ReplicaManager, partition: Partition, directory: str | None, *, is_new: bool) -> int:
    """Return whether a partition gets a log with its role. Partition#createLogInAssignedDirectoryId.

    NONE: it has one from now on. NOT_LEADER_OR_FOLLOWER: it goes on without. KAFKA_STORAGE_ERROR: it goes offline.
    `directory` is the one that metadata assigns, None where it assigns none.
    """
    if partition.has_log or not manager.offline_dirs:
        return NONE
    if directory not in {None, UNASSIGNED, *manager.online_dirs}:
        return NOT_LEADER_OR_FOLLOWER
    return NONE if is_new else KAFKA_STORAGE_ERROR
