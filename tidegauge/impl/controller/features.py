"""metadata.version and the features that depend on it: what a level has, and who may change it to what.

Rules of this file

1. A profile has the generation of a release; what a feature level decides within it is set when the level is replayed:
   the ELR, and the leader epoch that grows when the ISR shrinks.
2. Source: org.apache.kafka.controller.FeatureControlManager, org.apache.kafka.server.common.MetadataVersion,
   EligibleLeaderReplicasVersion.
"""

from typing import NamedTuple

from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import INVALID_UPDATE_VERSION, NONE

METADATA_VERSION = "metadata.version"
ELR_VERSION = "eligible.leader.replicas.version"

IBP_3_3_IV3 = 7
IBP_3_6_IV0 = 12  # the leader epoch no longer grows with a shrink (KAFKA-15021)
IBP_3_7_IV2 = 17  # log directories are assigned (KIP-858)
IBP_4_0_IV1 = 23  # eligible leader replicas (KIP-966)
IBP_4_1_IV1 = 27
IBP_4_3_IV0 = 30
CHANGED_METADATA = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
"""Levels that wrote something new, so that nobody goes back across them. MetadataVersion#didMetadataChange."""


class Features(NamedTuple):
    """The finalized levels."""

    metadata_version: int = IBP_4_3_IV0
    elr: int = 0

    @property
    def has_directories(self) -> bool:
        """MetadataVersion#isDirectoryAssignmentSupported."""
        return self.metadata_version >= IBP_3_7_IV2


def profile_in_force(profile: Profile, features: Features) -> Profile:
    """Return the release's profile with the two switches set that these feature levels decide."""
    bumps_epoch = features.metadata_version < IBP_3_6_IV0
    return profile._replace(elr=features.elr > 0, epoch_bump_on_shrink=bumps_epoch)


def partition_change_record_version(features: Features) -> int:
    """Return the version of PartitionChangeRecord, 0 to 2. MetadataVersion#partitionChangeRecordVersion."""
    return (features.metadata_version >= IBP_3_7_IV2) + (features.metadata_version >= IBP_4_0_IV1)


class FeatureUpdate(NamedTuple):
    """One feature of an UpdateFeatures request. `upgrade` False is a safe downgrade."""

    name: str
    level: int
    upgrade: bool = True


def update_error(features: Features, update: FeatureUpdate, latest: int) -> int:
    """Return the error of an update of a feature's level, NONE if it may be written. FeatureControlManager#updateFeature.

    `latest` is the highest metadata.version that controller and brokers know.
    """
    is_version = update.name == METADATA_VERSION
    current_level = features.metadata_version if is_version else features.elr
    # The levels of ELR are 0 and 1: off and on.
    lowest, highest = (IBP_3_3_IV3, latest) if is_version else (0, 1)
    if not lowest <= update.level <= highest:
        return INVALID_UPDATE_VERSION
    # An upgrade must not lower the level, and only an update that is called a downgrade may.
    wrong_direction = update.level < current_level if update.upgrade else update.level > current_level
    if wrong_direction:
        return INVALID_UPDATE_VERSION
    # A downgrade must not cross a level that wrote records or fields which an older controller cannot read.
    if is_version and any(level in CHANGED_METADATA for level in range(update.level + 1, current_level + 1)):
        return INVALID_UPDATE_VERSION
    # Records of ELR need a metadata.version that has them.
    if not is_version and update.level > 0 and features.metadata_version < IBP_4_0_IV1:
        return INVALID_UPDATE_VERSION
    return NONE
