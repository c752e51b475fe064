"""A broker that answers as Kafka did: what was sent and received in a run of the probe, played again.

    python -m tests.drive.probe.recorded REPORT.json FILE.gz

makes a recording of what `tidegauge probe --json` wrote. A request is answered with what the same bytes were answered with,
one after the other, the last one for ever; the correlation id is the new one. What was asked while topics were deleted is
answered from there once the first one is to be deleted: what was there before is gone then. To close a fetch session is to
close any: a check that fails leaves one open that was closed in the recording.
"""

import gzip
import json
import sys
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path

from tidegauge.drive.probe.connection import VERSION_AT, Wire, shipped_messages
from tidegauge.drive.wire.compiler import WireError, WireMessage
from tidegauge.drive.wire.frames import WireRequest, read_response
from tidegauge.impl.fetch.fetch_session import FINAL_EPOCH

FOLDER = Path(__file__).parent
RELEASES = ("3.4.0", "4.1.1")
NUMBER = slice(8, 12)
"""The correlation id in a frame with its length."""
FETCH, API_VERSIONS_KEY, DELETE_TOPICS = (number.to_bytes(2, "big") for number in (1, 18, 20))
"""The API keys in a frame."""
NOBODY_HAS = (30_000).to_bytes(2, "big")
"""The version that the probe claims where it asks for one that nobody has."""

Exchanges = list[tuple[str, str, str | None]]
"""To whom, what was sent and received, in hex."""

Rewrite = Callable[[str, WireMessage], None]


def plainly(_name: str, _message: WireMessage) -> None:
    """Changes nothing."""


class Recording:
    """A run that was recorded. What `rewrite` does to a response is what the probe sees."""

    def __init__(self, release: str) -> None:
        found = json.loads(gzip.decompress((FOLDER / f"kafka-{release}.gz").read_bytes()))
        host, _, port = found["place"].rpartition(":")
        self.place, self.seed = (host, int(port)), int(found["seed"])
        self.sent: list[tuple[str, bytes]] = []
        self.rewrite: Rewrite = plainly
        self.responds_to_silence = False
        self._exchanges, self._cleanup = found["exchanges"], found["removal"]
        self.rewind()

    def rewind(self) -> "Recording":
        """From the beginning."""
        self._responses, self._is_removing = _by_request(self._exchanges), False
        self.sent, self.rewrite, self.responds_to_silence = [], plainly, False
        return self

    def dial(self, host: str, port: int) -> Wire:
        """A connection."""
        return _Connection(self, f"{host}:{port}")

    def response(self, to: str, frame: bytes) -> bytes | None:
        """What came back, None for nothing."""
        self.sent.append((to, frame))
        # Of a topic that is not there, a check asks it, too.
        if not self._is_removing and frame[4:6] == DELETE_TOPICS and b"-absent" not in frame:
            self._responses |= _by_request(self._cleanup)
            self._is_removing = True
        known = self._responses.get((to, what_is_asked(frame)))
        assert known, f"this was never asked of {to}: {frame.hex()}"
        data = known.popleft() if len(known) > 1 else known[0]
        return None if data is None else self._rewritten(frame, data)

    def _rewritten(self, frame: bytes, data: bytes) -> bytes:
        number, version = frame[NUMBER], int.from_bytes(frame[VERSION_AT : VERSION_AT + 2], "big")
        if frame[6:8] == NOBODY_HAS and frame[4:6] == API_VERSIONS_KEY:
            version = 0  # in which it is answered (KIP-511)
        name = shipped_messages().api_name(int.from_bytes(frame[4:6], "big"))
        if self.rewrite is plainly or version not in shipped_messages().versions(f"{name}Response"):
            return number + data[4:]
        message, _ = read_response(shipped_messages(), WireRequest(name, version, {}), int.from_bytes(data[:4], "big"), data)
        self.rewrite(name, message)
        tags = b"\0" if name != "ApiVersions" and shipped_messages().is_flexible(f"{name}Response", version) else b""
        return number + tags + shipped_messages().write(f"{name}Response", version, message)


def _by_request(exchanges: Exchanges) -> dict[tuple[str, bytes], deque[bytes | None]]:
    found: defaultdict[tuple[str, bytes], deque[bytes | None]] = defaultdict(deque)
    for to, sent, received in exchanges:
        found[to, what_is_asked(bytes.fromhex(sent))].append(None if received is None else bytes.fromhex(received))
    return found


class _Connection:
    def __init__(self, recording: Recording, to: str) -> None:
        self._recording, self._to = recording, to
        self._waiting: deque[bytes | None] = deque()

    def send(self, frame: bytes) -> None:
        """What is not answered is not waited for, but where the connection was closed."""
        found = self._recording.response(self._to, frame)
        if not is_silent(frame):
            self._waiting.append(found)
        elif self._recording.responds_to_silence:
            self._waiting.append(frame[NUMBER] + bytes(30))

    def receive(self) -> bytes:
        """The next response."""
        found = self._waiting.popleft() if self._waiting else None
        if found is None:
            raise EOFError
        return found

    def close(self) -> None:
        """Nothing is waited for."""


def what_is_asked(frame: bytes) -> bytes:
    """A frame is the same whatever its correlation id is, and whichever fetch session it closes."""
    if closes_session(frame):
        return b"closes" + frame[4:8]
    return frame[: NUMBER.start] + frame[NUMBER.stop :]


def closes_session(frame: bytes) -> bool:
    """Whether it is a fetch of nothing, in no session."""
    call = asked(frame) if frame[4:6] == FETCH and frame[6:8] != NOBODY_HAS else None
    return call is not None and call.body.get("sessionEpoch") == FINAL_EPOCH and not call.body["topics"]


def is_silent(frame: bytes) -> bool:
    """Whether it is a produce request with acks=0."""
    try:
        return asked(frame).name == "Produce" and asked(frame).body["acks"] == 0
    except WireError:
        return False


def asked(frame: bytes) -> WireRequest:
    """The request in a frame."""
    version = int.from_bytes(frame[VERSION_AT : VERSION_AT + 2], "big")
    name = shipped_messages().api_name(int.from_bytes(frame[4:6], "big"))
    flexible = version in shipped_messages().versions(f"{name}Request") and shipped_messages().is_flexible(
        f"{name}Request", version
    )
    at = 14 + int.from_bytes(frame[12:14], "big") + flexible
    return WireRequest(name, version, shipped_messages().read(f"{name}Request", version, frame, at)[0])


def topics_in(found: Recording, request: str) -> set[str]:
    """Names of topics in requests that were sent."""
    calls = [asked(frame) for _, frame in found.sent if frame[6:8] != NOBODY_HAS]
    named = (name for call in calls if call.name == request for name in _topics_of(call.body))
    return {name for name in named if not name.endswith("-absent")}


def _topics_of(body: WireMessage) -> list[str]:
    return [topic["name"] for topic in body["topics"]] if "topics" in body else list(body["topicNames"])


def main(report: Path, target: Path) -> None:
    """Keep what a report says was sent and received."""
    found = json.loads(report.read_text(encoding="utf-8"))
    checks, cleanup = (
        [[one["to"], one["sent"], one["received"]] for one in exchanges]
        for exchanges in ([one for check in found["checks"] for one in check["exchanges"]], found["removal"])
    )
    body = {"place": found["place"], "seed": found["seed"], "tool": found["tool"], "exchanges": checks, "removal": cleanup}
    target.write_bytes(gzip.compress(json.dumps(body, separators=(",", ":")).encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
