"""franz-go's kfake. Sources: the module github.com/twmb/franz-go/pkg/kfake at v0.0.0-20260918054303-01f206a7e32c."""

from validation.third_parties.third_party import Reason, ThirdParty, go_starter

KFAKE = ThirdParty(
    "kfake",
    "franz-go's kfake",
    "“A fake Kafka broker for testing” (`cluster.go`), a part of the Go client franz-go, with a list of omissions "
    "(`skipped_features`). Two brokers, started by `validation/third_parties/starters/kfake`. As “writes are immediate (no "
    "replication)”, nothing is ever above the high watermark.",
    go_starter("kfake"),
    (
        Reason(
            ("divergence.*",),
            "The last fetched epoch of a fetch is ignored: diverging logs are never detected.",
            "`skipped_features`, 01_fetch: “LastFetchedEpoch/DivergingEpoch: Log truncation detection not implemented”",
            claimed=False,
        ),
        Reason(
            ("fetch.foreign-replica-*",),
            "A fetch with a replica id is served like a consumer's fetch, whether or not that replica is assigned.",
            "`01_fetch.go`: “v15: ReplicaState (KIP-903) - broker-only, ignored”",
            claimed=False,
        ),
        Reason(
            ("append.without-key-to-a-compacted-topic",),
            "A record without a key is appended to a compacted topic: single records are not checked.",
            "`skipped_features`, 00_produce: “kfake validates at batch level only”",
            claimed=False,
        ),
        Reason(
            ("versions.newer-api-versions",),
            "ApiVersions in an unknown version closes the connection unless its body is like that of version 5: the body is "
            "read before the response of KIP-511 is sent.",
            "`client_conn.go` clientConn.read; `18_api_versions.go` handleApiVersions",
        ),
        Reason(
            ("epochs.undefined",),
            "The end of epoch -1 is the log start; Kafka's response has no end.",
            "`23_offset_for_leader_epoch.go` handleOffsetForLeaderEpoch",
        ),
        Reason(
            ("sessions.by-name-or-by-id",),
            "A fetch session that began with topic ids continues with names, and vice versa.",
            "`01_fetch.go` fetchSessions.getOrCreate: the version is not looked at",
        ),
        Reason(
            ("sessions.empty",),
            "A fetch session without partitions stays; in Kafka it ends.",
            "`01_fetch.go` fetchSession.forgetPartition: it is taken out, and no more",
        ),
        Reason(
            ("sessions.turns",),
            "Partitions do not take turns: the first one of a fetch session is random, as Go's maps are.",
            "`01_fetch.go` Cluster.handleFetch: the loop over session.partitions",
        ),
        Reason(
            ("append.base-offset", "append.two-batches", "append.offsets-without-records"),
            "Refused with CORRUPT_MESSAGE, in Kafka with INVALID_RECORD: after the first a producer sends the batch again, "
            "after the second it gives up.",
            "`00_produce.go` handleProduce",
        ),
        Reason(
            ("append.offset-of-a-refusal",),
            "A refused batch has the base offset 0.",
            "`00_produce.go` handleProduce, donep: the field is not set",
        ),
        Reason(
            ("producers.numbers-begin-again",),
            "After sequence number 2,147,483,647 the next one is 1, not 0.",
            "`txns.go` pidwindow.pushAndValidate",
        ),
        Reason(
            ("delete.below-the-log-start",),
            "DeleteRecords below the log start is refused; Kafka answers with the log start and changes nothing.",
            "`21_delete_records.go` Cluster.deleteRecords",
        ),
        Reason(
            ("delete.low-watermark-of-a-refusal",),
            "A refused DeleteRecords has the low watermark 0.",
            "`21_delete_records.go` handleDeleteRecords, donep: the field is not set",
        ),
    ),
)
