"""librdkafka's mock brokers. Sources: github.com/confluentinc/librdkafka at 4c3b017c3, one commit after v2.15.0."""

from validation.third_parties.third_party import Reason, ThirdParty, python_starter

HANDLERS, MOCK = "`src/rdkafka_mock_handlers.c`", "`src/rdkafka_mock.c`"

LIBRDKAFKA = ThirdParty(
    "librdkafka",
    "librdkafka's mock cluster",
    "“A mock Kafka cluster with a configurable number of brokers that support a reasonable subset of Kafka protocol "
    "operations, error injection, etc.”, an experimental interface (`src/rdkafka_mock.h` lists what it supports: producers, "
    "consumers and their groups, Metadata, telemetry). Two brokers, started by "
    "`validation/third_parties/starters/librdkafka.py`. The sources are those of v2.15.0.",
    python_starter("librdkafka", "confluent-kafka"),
    (
        Reason(
            ("offsets.timestamp-*", "offsets.greatest-timestamp"),
            "Timestamps are not looked up: offset -1.",
            f"{HANDLERS} rd_kafka_mock_handle_ListOffsets: “FIXME: by timestamp”",
            claimed=False,
        ),
        Reason(
            ("divergence.*",),
            "The last fetched epoch of a fetch is read and not looked at. Truncation is not in the list of what is "
            "supported.",
            f"{HANDLERS} rd_kafka_mock_handle_Fetch; the list in `src/rdkafka_mock.h`",
            claimed=False,
        ),
        Reason(
            ("fetch.foreign-replica-*",),
            "A fetch with a replica id is served like a consumer's. Replication is not in the list of what is supported.",
            f"{HANDLERS} rd_kafka_mock_handle_Fetch; the list in `src/rdkafka_mock.h`",
            claimed=False,
        ),
        Reason(
            ("sessions.unknown-id",),
            "A fetch in a session that was never given is served as one in none: the session id is written back and not "
            "looked at. Fetch sessions are not in the list of what is supported.",
            f"{HANDLERS} rd_kafka_mock_handle_Fetch; the list in `src/rdkafka_mock.h`",
            claimed=False,
        ),
        Reason(
            ("versions.newer-api-versions",),
            "ApiVersions in a version that it does not have is refused with UNSUPPORTED_VERSION, in the form of version "
            "3; KIP-511 says version 0.",
            f"{HANDLERS} rd_kafka_mock_handle_ApiVersion",
        ),
        Reason(
            ("versions.produce",),
            "A response to Produce version 5 ends before the log start offset, which is written since version 6; it is "
            "there since version 5.",
            f"{HANDLERS} rd_kafka_mock_handle_Produce",
        ),
        Reason(
            ("epochs.not-begun",),
            "An epoch that it has not heard of comes back with the offset -1; Kafka names no epoch either.",
            f"{HANDLERS} rd_kafka_mock_handle_OffsetForLeaderEpoch: the epoch of the request is written",
        ),
        Reason(
            ("epochs.empty-log",),
            "The leader's epoch ends nowhere (-1) while no record has it; at Kafka it ends where it began.",
            f"{MOCK} rd_kafka_mock_partition_offset_for_leader_epoch",
        ),
        Reason(
            ("offsets.latest*",),
            "The latest offset has no leader epoch (-1): it is that of the batch at this offset, and there is none yet.",
            f"{HANDLERS} rd_kafka_mock_handle_ListOffsets",
        ),
        Reason(
            ("acks.zero",),
            "Produce with acks=0 is answered. A client that waits for none takes that for the response to its next request.",
            f"{HANDLERS} rd_kafka_mock_handle_Produce: sent whatever acks says",
        ),
        Reason(
            ("acks.invalid",),
            "acks are read and not looked at: 2 and 7 are taken.",
            f"{HANDLERS} rd_kafka_mock_handle_Produce",
        ),
        Reason(
            ("append.*",),
            "Batches are taken as they are, but for their format version and their count: no checksum, no length, no "
            "base offset, no attributes.",
            f"{MOCK} rd_kafka_mock_partition_log_append, rd_kafka_mock_validate_records",
        ),
        Reason(
            ("producers.*",),
            "Sequence numbers and producer epochs are looked at for transactional producers alone: a batch of an "
            "idempotent one that is sent again is appended again.",
            f"{MOCK} rd_kafka_mock_validate_records",
        ),
    ),
)
