"""Connections over TLS and SASL, by the configuration file of Kafka's own clients (`--command-config`).

Rules of this file

1. Options have the names and meanings of Kafka's clients, or of librdkafka; certificates are PEM (KIP-651). An option that
   starts with `security.`, `sasl.` or `ssl.` and is not known here is an error, since a connection without it would be
   another one. All other options are passed over.
2. No secret is in a message, a report or a `repr`, also if the broker repeats it.
3. A broker that asks for more than a client should pay is refused: `MOST_ITERATIONS`.
"""

import io
import re
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidegauge.drive.probe.connection import CLIENT, SocketWire, Wire, shipped_messages
from tidegauge.drive.wire.compiler import WireError, WireMessage
from tidegauge.drive.wire.frames import WireRequest, read_response, request_frame
from tidegauge.traces.problems import shown
from tidegauge.util.bounds import read_regular
from tidegauge.util.errors import UsageError
from tidegauge.util.foreign_text import visible

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MOST_ITERATIONS = 1_000_000
"""Iterations of SCRAM that a broker may ask for: half a second. Kafka has 4,096 to 16,384 (ScramMechanism)."""
LARGEST_FILE = 1 << 20
INSTALL = "pip install 'tidegauge[sasl]'"
SAME_AS: Mapping[str, str] = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.location",
}
"""Options of librdkafka, by the options of Kafka's clients that mean the same."""
OPTIONS = {
    "security.protocol",
    "sasl.jaas.config",
    "sasl.mechanism",
    "sasl.password",
    "sasl.username",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.type",
}
_JAAS_TOKEN = re.compile(r"""\s*(?:(["'])((?:(?!\1)[^\\]|\\.)*)\1|([^\s=;"']+)|([=;]))""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

SecureDial = Callable[[str, int, str], Wire]
"""Opens a connection to an address and a port of a host with this name. Raises OSError."""


class AuthenticationError(OSError):
    """The broker refuses the credentials, or its part of SASL is wrong."""


@dataclass(frozen=True)
class Credentials:
    """Who the client is."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class ClientSecurity:
    """What a connection is wrapped in, and what is said on it first."""

    tls: ssl.SSLContext | None = None
    credentials: Credentials | None = None


NO_SECURITY = ClientSecurity()


def secured(seconds: float, security: ClientSecurity = NO_SECURITY) -> SecureDial:
    """Return a dial for connections that wait at most some seconds for anything."""

    def dial(address: str, port: int, name: str) -> Wire:
        wire = SocketWire(address, port, seconds, security.tls, name)
        try:
            if security.credentials is not None:
                authenticate(wire, security.credentials)
        except BaseException:
            wire.close()
            raise
        return wire

    return dial


def authenticate(wire: Wire, credentials: Credentials) -> None:
    """Authenticate on a new connection (KIP-43, KIP-152). Raises OSError, with a message that has no secret."""
    try:
        _authenticate(wire, credentials)
    except (WireError, EOFError) as problem:
        # Not `from`: what a broker sends may hold the password.
        why = shown(str(problem).replace(credentials.password, "***")) if str(problem) else "a connection that was closed"
        raise AuthenticationError(f"SASL {credentials.mechanism}: expected the broker to authenticate; seen {why}") from None


def _authenticate(wire: Wire, credentials: Credentials) -> None:
    """Exchange the messages of the SASL mechanism until it is done."""
    handshake = _response(wire, WireRequest("SaslHandshake", 1, {"mechanism": credentials.mechanism}), 1)
    if handshake["errorCode"]:
        raise WireError(
            f"error {handshake['errorCode']}; the broker has the mechanisms {', '.join(handshake['mechanisms'])}"
        )
    messages = _plain(credentials) if credentials.mechanism == "PLAIN" else _scram(credentials)
    token, number = next(messages), 1
    while True:
        number += 1
        response = _response(wire, WireRequest("SaslAuthenticate", 1, {"authBytes": token}), number)
        if response["errorCode"]:
            raise WireError(f"error {response['errorCode']}, {response['errorMessage']}")
        try:
            token = messages.send(response["authBytes"])
        except StopIteration:
            return


def _response(wire: Wire, call: WireRequest, number: int) -> WireMessage:
    wire.send(request_frame(shipped_messages(), call, number, CLIENT))
    return read_response(shipped_messages(), call, number, wire.receive())[0]


def _plain(credentials: Credentials) -> Generator[bytes, bytes, None]:
    """Yield the message of RFC 4616."""
    yield f"\0{credentials.username}\0{credentials.password}".encode()


def _scram(credentials: Credentials) -> Generator[bytes, bytes, None]:
    """Yield the messages of RFC 5802; get the server's, and check that it knows the password, too. Raises WireError."""
    from scramp import ScramClient, ScramException  # noqa: PLC0415  an extra

    try:
        client = ScramClient([credentials.mechanism], credentials.username, credentials.password)
        client.set_server_first((yield client.get_client_first().encode()).decode())
        if int(client.iterations) > MOST_ITERATIONS:
            raise WireError(f"{client.iterations} iterations, more than {MOST_ITERATIONS:,}")
        client.set_server_final((yield client.get_client_final().encode()).decode())
    except (ScramException, ValueError) as problem:
        raise WireError(str(problem)) from None


def security_in(path: str) -> ClientSecurity:
    """Read the security options of a configuration file. Raises UsageError."""
    options = _options(path)

    def wrong(name: str, expected: str, seen: str) -> UsageError:
        return UsageError(f"{visible(path)}: {name}: expected {expected}; seen {seen}")

    protocol = options.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise wrong("security.protocol", f"one of {', '.join(PROTOCOLS)}", shown(protocol))
    credentials = tls = None
    if protocol.startswith("SASL"):
        mechanism = options.get("sasl.mechanism", "GSSAPI")
        if mechanism not in MECHANISMS:
            raise wrong("sasl.mechanism", f"one of {', '.join(MECHANISMS)}", shown(mechanism))
        jaas = {**options, **_login(options["sasl.jaas.config"])} if "sasl.jaas.config" in options else options
        username, password = (jaas.get(name, jaas.get(f"sasl.{name}", "")) for name in ("username", "password"))
        if not username or not password or "\0" in username + password:
            example = 'org.apache.kafka..LoginModule required username="U" password="P";'
            raise wrong("sasl.jaas.config", f"{example} (or sasl.username and sasl.password)", "no such user and password")
        credentials = Credentials(mechanism, username, password)
    if protocol.endswith("SSL"):
        for store in ("truststore", "keystore"):
            kind = options.get(f"ssl.{store}.type", "PEM").upper()
            if kind != "PEM":
                pem = "keytool -exportcert -rfc" if store == "truststore" else "openssl pkcs12"
                raise wrong(f"ssl.{store}.type", f"PEM ({pem} makes one)", shown(kind))
        try:
            tls = _tls(options)
        except (OSError, ValueError) as problem:
            # ssl names no file, and PEM is no text for a terminal.
            reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else "no PEM"
            raise wrong("ssl.*", "PEM files that can be read, and the password of the key", shown(reason)) from None
    return ClientSecurity(tls, credentials)


def _options(path: str) -> Mapping[str, str]:
    """Read the file of --command-config. Raises UsageError for an unknown option of security."""
    try:
        import javaproperties  # noqa: PLC0415  an extra
        import scramp  # noqa: F401, PLC0415
    except ImportError:
        raise UsageError(f"--command-config: expected two libraries that are not installed; run: {INSTALL}") from None
    try:
        options = javaproperties.load(io.BytesIO(read_regular(Path(path), LARGEST_FILE)))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "no properties"
        raise UsageError(f"--command-config: expected a file of properties; seen {visible(path)}: {reason}") from None
    options = {SAME_AS.get(name, name): value.strip() for name, value in options.items()}
    for name in options:
        if name.startswith(("security.", "sasl.", "ssl.")) and name not in OPTIONS:
            known = ", ".join(sorted({*OPTIONS, *SAME_AS}))
            raise UsageError(f"{visible(path)}: expected of the options of security one of {known}; seen {shown(name)}")
    return options


def _login(jaas: str) -> Mapping[str, str]:
    """Return the options of the one login module of a JAAS configuration; none if it is not written so."""
    tokens = list(_tokens(jaas))
    words, end = tokens[2:-1], tokens[-1:]
    if end != [";"] or len(words) % 3 or words[1::3] != ["="] * (len(words) // 3):
        return {}
    return dict(zip(words[::3], words[2::3], strict=True))


def _tokens(jaas: str) -> Iterator[str]:
    at = 0
    while at < len(jaas.rstrip()):
        token = _JAAS_TOKEN.match(jaas, at)
        if token is None:
            return
        _, quoted, word, sign = token.groups()
        yield word or sign or _ESCAPE.sub(r"\1", quoted)
        at = token.end()


def _tls(options: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context of TLS 1.2 or later. Raises OSError or ValueError."""
    location, text = options.get("ssl.truststore.location"), options.get("ssl.truststore.certificates")
    context = ssl.create_default_context(cafile=location, cadata=text)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = options.get("ssl.endpoint.identification.algorithm", "https").lower() == "https"
    if "ssl.keystore.location" in options:
        # Without a password OpenSSL would ask for one on the terminal.
        password = options.get("ssl.key.password", "")
        context.load_cert_chain(options["ssl.keystore.location"], options.get("ssl.key.location"), lambda: password)
    return context
