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
            "A look-up by timestamp returns the offset -1.",
            f"{HANDLERS} rd_kafka_mock_handle_ListOffsets: “FIXME: by timestamp”",
            claimed=False,
        ),
        Reason(
            ("divergence.*",),
            "The last fetched epoch of a fetch is ignored. Truncation is not in the list.",
            f"{HANDLERS} rd_kafka_mock_handle_Fetch; the list in `src/rdkafka_mock.h`",
            claimed=False,
        ),
        Reason(
            ("fetch.foreign-replica-*",),
            "A fetch with a replica id is served like a consumer's. Replication is not in the list.",
            f"{HANDLERS} rd_kafka_mock_handle_Fetch; the list in `src/rdkafka_mock.h`",
            claimed=False,
        ),
        Reason(
            ("sessions.unknown-id",),
            "A fetch with an unknown session id is served as one without a session. Fetch sessions are not in the list.",
            f"{HANDLERS} rd_kafka_mock_handle_Fetch; the list in `src/rdkafka_mock.h`",
            claimed=False,
        ),
        Reason(
            ("versions.newer-api-versions",),
            "ApiVersions in an unknown version is refused in version 3, not in version 0 (KIP-511).",
            f"{HANDLERS} rd_kafka_mock_handle_ApiVersion",
        ),
        Reason(
            ("versions.metadata",),
            "A response to Metadata version 9 ends with a byte too many: its empty tags are written twice.",
            f"{HANDLERS} rd_kafka_mock_handle_Metadata and {MOCK} rd_kafka_mock_connection_send_response0 both write them",
        ),
        Reason(
            ("versions.produce",),
            "A response to Produce version 5 lacks the log start offset.",
            f"{HANDLERS} rd_kafka_mock_handle_Produce",
        ),
        Reason(
            ("epochs.not-begun",),
            "The response to an unknown epoch contains that epoch, with the offset -1; Kafka's has no epoch.",
            f"{HANDLERS} rd_kafka_mock_handle_OffsetForLeaderEpoch: the epoch of the request is written",
        ),
        Reason(
            ("epochs.empty-log",),
            "The leader's epoch has no end (-1) while no record has it; in Kafka it ends where it began.",
            f"{MOCK} rd_kafka_mock_partition_offset_for_leader_epoch",
        ),
        Reason(
            ("offsets.latest*",),
            "The latest offset has no leader epoch (-1).",
            f"{HANDLERS} rd_kafka_mock_handle_ListOffsets",
        ),
        Reason(
            ("acks.zero",),
            "Produce with acks=0 is answered. A client takes that for the response to its next request.",
            f"{HANDLERS} rd_kafka_mock_handle_Produce: sent whatever acks says",
        ),
        Reason(
            ("acks.invalid",),
            "acks are ignored: 2 and 7 are accepted.",
            f"{HANDLERS} rd_kafka_mock_handle_Produce",
        ),
        Reason(
            ("append.*",),
            "Only the format version and the count of a batch are checked.",
            f"{MOCK} rd_kafka_mock_partition_log_append, rd_kafka_mock_validate_records",
        ),
        Reason(
            ("producers.*",),
            "Sequence numbers and producer epochs are checked only for transactional producers.",
            f"{MOCK} rd_kafka_mock_validate_records",
        ),
    ),
)
