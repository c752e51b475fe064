"""The probe behind TLS and SASL: a listener that demands them, what it is told, and what a wrong one learns."""

import base64
import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.drive.probe.recorded import Recording, asked
from tidegauge.cli.main import main
from tidegauge.drive.probe.connection import BrokerConnection, NoConnectionError, Wire, shipped_messages
from tidegauge.drive.probe.run import CheckVerdict, probe, select_checks
from tidegauge.drive.probe.security import (
    MOST_ITERATIONS,
    AuthenticationError,
    ClientSecurity,
    Credentials,
    authenticate,
    secured,
    security_in,
    staying_with,
)
from tidegauge.util.errors import UsageError

try:
    import scramp
except ImportError:
    scramp = None
pytestmark = pytest.mark.skipif(scramp is None, reason="pip install 'tidegauge[sasl]'")

HOST = "127.0.0.1"
USER, PASSWORD = "al,i=ce", 'the "secret" \\ of alice'
JAAS = 'org.apache.kafka.common.security.{0}LoginModule required username="{1}" password="{2}";'
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def certificate(folder: Path, host: str = HOST, password: bytes = b"") -> Path:
    """A self-signed one, and its key, in one file of PEM."""
    key, today = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    alternative = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(today - timedelta(days=1)).not_valid_after(today + timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    lock = BestAvailableEncryption(password) if password else NoEncryption()
    path = folder / "broker.pem"
    public = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock) + public)
    (folder / "ca.pem").write_bytes(public)
    return path


def configuration(folder: Path, options: Mapping[str, object]) -> str:
    path = folder / "client.properties"
    lines = (f"{name}={value}".replace("\\", "\\\\") for name, value in options.items())
    path.write_text("# as Kafka's tools take it\nclient.id=x\n" + "\n".join(lines), encoding="latin-1")
    return str(path)


def sasl_options(mechanism: str, password: str = PASSWORD, user: str = USER) -> dict[str, object]:
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": JAAS.format(module, user, quoted)}


# ---------------------------------------------------------------------------------------------------------------------
# A listener


class RefusedError(Exception):
    """What a broker does not take."""


def frames(peer: socket.socket) -> Iterator[bytes]:
    data = b""
    while part := peer.recv(1 << 16):
        data += part
        while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
            yield data[:end]
            data = data[end:]


def respond(peer: socket.socket, frame: bytes, body: dict[str, object]) -> None:
    call = asked(frame)
    data = frame[8:12] + shipped_messages().write(f"{call.name}Response", call.version, body)
    peer.sendall(len(data).to_bytes(4, "big") + data)


def log_in(peer: socket.socket, coming: Iterator[bytes], mechanism: str) -> None:
    """Take the user and the password in this mechanism only."""
    frame = next(coming)
    code = 0 if asked(frame).body["mechanism"] == mechanism else 33
    respond(peer, frame, {"errorCode": code, "mechanisms": [mechanism]})
    scram = None
    if mechanism != "PLAIN":
        known = scramp.ScramMechanism(mechanism)
        scram = known.make_server(lambda _: known.make_auth_info(PASSWORD))
    for stage in range(1 if scram is None else 2):
        frame = next(coming)
        token, code, back = asked(frame).body["authBytes"].decode(), 0, ""
        try:
            if scram is None:
                code = 0 if token == f"\0{USER}\0{PASSWORD}" else 58
            elif stage == 0:
                scram.set_client_first(token)
                back = scram.get_server_first()
            else:
                scram.set_client_final(token)
                back = scram.get_server_final()
        except Exception:  # whatever the library thinks of it
            code = 58
        words = f"no: {token}" if code else None
        body = {"errorCode": code, "errorMessage": words, "authBytes": back.encode(), "sessionLifetimeMs": 0}
        respond(peer, frame, body)
        if code:
            raise RefusedError


def serve(
    recording: Recording, mechanism: str, places: list[tuple[str, int]] | None = None
) -> Callable[[socket.socket], None]:
    """The recorded broker; of the two, a client means the next of the places."""

    def session(peer: socket.socket) -> None:
        coming = frames(peer)
        place = places.pop(0) if places else recording.place
        if mechanism:
            log_in(peer, coming, mechanism)
        wire = recording.dial(*place)
        for frame in coming:
            wire.send(frame)
            with suppress(EOFError):
                data = wire.receive()
                peer.sendall(len(data).to_bytes(4, "big") + data)

    return session


@contextmanager
def listener(session: Callable[[socket.socket], None], pem: Path | None = None, **tls: object) -> Iterator[int]:
    """A port; each connection has a session, behind TLS if there is a certificate."""
    context = None
    if pem is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        if "clients" in tls:
            context.load_verify_locations(str(tls["clients"]))
            context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server((HOST, 0)) as server:

        def one(peer: socket.socket) -> None:
            with peer, suppress(OSError, RefusedError, StopIteration):
                if context is None:
                    session(peer)
                else:
                    with context.wrap_socket(peer, server_side=True) as secure:
                        session(secure)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = server.accept()
                    sessions.append(threading.Thread(target=one, args=(peer,)))
                    sessions[-1].start()

        sessions = [threading.Thread(target=accept)]
        sessions[0].start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for thread in sessions:
                thread.join()


def versions(port: int, security: ClientSecurity, seconds: float = 20.0) -> object:
    """Whether the broker on this port says its versions."""
    dial = staying_with(HOST, secured(seconds, security), follow_metadata=False)
    connection = BrokerConnection(shipped_messages(), dial, HOST, port, lambda _: None)
    try:
        return connection.versions
    finally:
        connection.close()


# ---------------------------------------------------------------------------------------------------------------------
# Right ones


@pytest.mark.parametrize("mechanism", ["", *MECHANISMS])
def test_a_probe_passes_behind_tls_and_sasl(tmp_path: Path, recording: Recording, mechanism: str) -> None:
    """Its certificate is checked, and the user; the recorded broker behind it passes as without."""
    pem = certificate(tmp_path)
    options = {"security.protocol": "SASL_SSL" if mechanism else "SSL", "ssl.truststore.location": tmp_path / "ca.pem"}
    options |= {"ssl.truststore.type": "PEM", **(sasl_options(mechanism) if mechanism else {})}
    security = security_in(configuration(tmp_path, options))
    wires: list[Wire] = []
    places: list[tuple[str, int]] = []
    with listener(serve(recording, mechanism, places), pem) as port:

        def dial(*place: Any) -> Wire:
            places.append(place)
            wires.append(secured(20.0, security)(HOST, port, HOST))
            return wires[-1]

        found = probe(dial, recording.place, recording.seed, select_checks(["acks.one"]), pause=lambda _: None)
        for wire in wires:
            wire.close()
    assert [outcome.verdict for outcome in found.outcomes] == [CheckVerdict.PASS]


def test_a_client_shows_its_own_certificate(tmp_path: Path, recording: Recording) -> None:
    """Whose key has a password."""
    (tmp_path / "client").mkdir()
    pem, client = certificate(tmp_path), certificate(tmp_path / "client", password=b"of the key")
    options = {"security.protocol": "ssl", "ssl.ca.location": tmp_path / "ca.pem", "ssl.keystore.location": client}
    keys = {"ssl.key.password": "of the key"}
    with listener(serve(recording, ""), pem, clients=tmp_path / "client" / "ca.pem") as port:
        assert versions(port, security_in(configuration(tmp_path, options | keys)))
        with pytest.raises(Exception, match="ApiVersions"):
            versions(port, security_in(configuration(tmp_path, {k: options[k] for k in list(options)[:2]})))
    with pytest.raises(UsageError, match="the password of the key"):
        security_in(configuration(tmp_path, options))


# ---------------------------------------------------------------------------------------------------------------------
# Wrong ones


def test_another_certificate_and_another_name_are_refused(tmp_path: Path, recording: Recording) -> None:
    for folder, host in (("ours", HOST), ("named", "other.example")):
        (tmp_path / folder).mkdir()
        certificate(tmp_path / folder, host)
    trusting = {
        folder: security_in(
            configuration(tmp_path, {"security.protocol": "SSL", "ssl.ca.location": tmp_path / folder / "ca.pem"})
        )
        for folder in ("ours", "named")
    }
    with listener(serve(recording, ""), tmp_path / "named" / "broker.pem") as port:
        with pytest.raises(NoConnectionError, match=r"self.signed"):
            versions(port, trusting["ours"])
        with pytest.raises(NoConnectionError, match="IP address mismatch"):
            versions(port, trusting["named"])
        # The name is what the certificate is for, whatever address it led to.
        secured(20.0, trusting["named"])(HOST, port, "other.example").close()
        off = {"security.protocol": "SSL", "ssl.ca.location": tmp_path / "named" / "ca.pem"}
        off["ssl.endpoint.identification.algorithm"] = ""
        assert versions(port, security_in(configuration(tmp_path, off)))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_tried_once_and_never_printed(
    tmp_path: Path, recording: Recording, mechanism: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also by a broker that repeats it."""
    tried: list[None] = []

    def session(peer: socket.socket) -> None:
        tried.append(None)
        log_in(peer, frames(peer), mechanism)

    options = {"security.protocol": "SASL_PLAINTEXT", **sasl_options(mechanism, "mistyped\x1b")}
    with listener(session) as port:
        file = configuration(tmp_path, options)
        code = main(["probe", f"{HOST}:{port}", "--command-config", file, "--json", str(tmp_path / "report.json")])
    printed = "".join(capsys.readouterr())
    assert code == 2
    assert len(tried) == 1
    assert f"SASL {mechanism}: expected the broker to authenticate; seen " in printed
    assert "mistyped" not in printed
    assert "mistyped" not in repr(security_in(file))
    assert not (tmp_path / "report.json").exists()


def test_a_mechanism_that_the_broker_lacks_is_named() -> None:
    with listener(lambda peer: log_in(peer, frames(peer), "PLAIN")) as port:
        security = ClientSecurity(credentials=Credentials("SCRAM-SHA-512", USER, PASSWORD))
        with pytest.raises(NoConnectionError, match="the broker has the mechanisms PLAIN"):
            versions(port, security)


def test_a_listener_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    """Neither in the handshake of TLS nor in SASL."""
    hold = threading.Event()
    certificate(tmp_path)
    options = {"security.protocol": "SSL", "ssl.ca.location": tmp_path / "ca.pem"}
    silent = [
        security_in(configuration(tmp_path, options)),
        ClientSecurity(credentials=Credentials("PLAIN", USER, PASSWORD)),
    ]
    with listener(lambda _: hold.wait(20) and None) as port:
        for security in silent:
            with pytest.raises(NoConnectionError, match="timed out"):
                versions(port, security, 0.2)
        hold.set()


# ---------------------------------------------------------------------------------------------------------------------
# Hostile ones


class Hostile:
    """A wire to a broker that answers SASL with what a script makes of the client's messages."""

    def __init__(self, *script: Callable[[str], bytes]) -> None:
        self._script, self._frames, self.sent = list(script), [], []

    def send(self, frame: bytes) -> None:
        call = asked(frame)
        if call.name == "SaslHandshake":
            body: dict[str, object] = {"errorCode": 0, "mechanisms": []}
        else:
            self.sent.append(call.body["authBytes"])
            token = self._script.pop(0)(self.sent[-1].decode()) if self._script else b""
            body = {"errorCode": 0, "errorMessage": None, "authBytes": token, "sessionLifetimeMs": 0}
        self._frames.append(frame[8:12] + shipped_messages().write(f"{call.name}Response", call.version, body))

    def receive(self) -> bytes:
        return self._frames.pop(0)

    def close(self) -> None:
        """Nothing is open."""


def server_first(nonce: str = "{0}more", salt: bytes = bytes(16), iterations: str = "4096") -> Callable[[str], bytes]:
    def make(client_first: str) -> bytes:
        own = client_first.rpartition("r=")[2]
        return f"r={nonce.format(own)},s={base64.b64encode(salt).decode()},i={iterations}".encode()

    return make


SCRAM = Credentials("SCRAM-SHA-256", USER, PASSWORD)


@pytest.mark.parametrize(
    "first",
    [
        server_first(nonce="another"),
        server_first(nonce="{0}"),
        server_first(iterations="1"),
        server_first(iterations="-5"),
        server_first(iterations="9" * 5000),
        server_first(iterations=str(MOST_ITERATIONS + 1)),
        server_first(salt=b""),
        lambda _: b"",
        lambda _: b"\xff\xfe",
        lambda _: b"e=invalid-proof",
        lambda first: first.encode(),
        lambda first: (first + PASSWORD).encode(),
    ],
)
def test_a_false_challenge_gets_no_proof_of_the_password(first: Callable[[str], bytes]) -> None:
    wire = Hostile(first)
    with pytest.raises(AuthenticationError) as raised:
        authenticate(wire, SCRAM)
    assert len(wire.sent) == 1
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("final", [b"", b"v=", b"v=" + base64.b64encode(bytes(32)), b"e=other-error", b"v=\xff", b"x"])
def test_a_broker_that_does_not_know_the_password_is_no_broker(final: bytes) -> None:
    """It would take any password, and has proved nothing of itself."""
    with pytest.raises(AuthenticationError):
        authenticate(Hostile(server_first(), lambda _: final), SCRAM)


def test_any_bytes_are_refused() -> None:
    """2,000 of them, seed 1, right challenges with a few bytes changed among them."""
    rng = random.Random(1)

    def mutated(client_first: str) -> bytes:
        right = bytearray(server_first()(client_first))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(right))
            right[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 3))
        return bytes(right)

    for count in range(2_000):
        script = mutated if count % 2 else lambda _: rng.randbytes(rng.randint(0, 60))
        with pytest.raises(AuthenticationError):
            authenticate(Hostile(script, lambda _: rng.randbytes(40)), SCRAM)


# ---------------------------------------------------------------------------------------------------------------------
# The file


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"security.protocol": "TLS"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, "seen 'GSSAPI'"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "no such user and password"),
        (
            {"security.protocol": "SASL_SSL", **sasl_options("PLAIN"), "sasl.jaas.config": "x required hidden"},
            "no such user",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.type": "JKS"}, "keytool -exportcert -rfc"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/nowhere.pem"}, "No such file"),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": "hidden"}, "PEM files that can be read"),
        ({"ssl.truststore.password": "hidden"}, r"seen 'ssl\.truststore\.password"),
        ({"sasl.oauthbearer.token": "hidden"}, r"seen 'sasl\.oauthbearer\.token"),
    ],
)
def test_what_cannot_be_followed_is_an_error_without_a_secret(
    tmp_path: Path, options: Mapping[str, object], says: str
) -> None:
    with pytest.raises(UsageError, match=says) as raised:
        security_in(configuration(tmp_path, options))
    assert "hidden" not in str(raised.value)


def test_the_file_is_read_as_java_reads_properties(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(
        b"security.protocol : sasl_plaintext\nsasl.mechanism=PLAIN\nsasl.jaas.config=x.PlainLoginModule required \\\n"
        b"   username=\"\\u00e4\" \\\n   password='p';\n"
    )
    assert security_in(str(path)).credentials == Credentials("PLAIN", "\u00e4", "p")
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=PLAIN\nsasl.username=u\nsasl.password=p\n")
    assert security_in(str(path)).credentials == Credentials("PLAIN", "u", "p")
    with pytest.raises(UsageError, match="--command-config"):
        security_in(str(tmp_path))


def test_escapes_in_a_password_are_those_of_java(tmp_path: Path) -> None:
    """java.io.StreamTokenizer: letters for control characters, up to three octal digits, any other for itself."""
    jaas = r'x.PlainLoginModule required username="a\tb" password="\101\1018\"\\n\q";'
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    assert security_in(configuration(tmp_path, options)).credentials == Credentials("PLAIN", "a\tb", 'AA8"\\nq')
