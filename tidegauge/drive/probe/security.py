"""Connections over TLS and SASL, by the configuration file of Kafka's own clients (`--command-config`).

`security_in` reads the file; `secured` makes of it a function that opens connections; `staying_with` limits those to the
hosts that may be connected to.

Rules of this file

1. Options have the names and meanings of Kafka's clients, or of librdkafka; certificates are PEM (KIP-651). An option that
   starts with `security.`, `sasl.` or `ssl.` and is not known here is an error, since a connection without it would be
   another one. All other options are passed over.
2. No secret is in a message, a report or a `repr`, also if the broker repeats it.
3. A broker that asks for more than a client should pay is refused: `MOST_ITERATIONS`.
"""

import io
import re
import socket
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path

from tidegauge.drive.probe.connection import CLIENT, Dial, SocketWire, Wire, shipped_messages
from tidegauge.drive.wire.compiler import WireError, WireMessage
from tidegauge.drive.wire.frames import WireRequest, read_response, request_frame
from tidegauge.traces.problems import shown
from tidegauge.util.errors import UsageError
from tidegauge.util.input_limits import read_regular
from tidegauge.util.untrusted_text import visible

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MOST_ITERATIONS = 1_000_000
"""Iterations of SCRAM that a broker may ask for: half a second. Kafka has 4,096 to 16,384 (ScramMechanism)."""
LARGEST_FILE = 1 << 20
"""Bytes of a configuration file at most."""
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
"""A token, as four groups: the quote and the text in quotes; or a bare word; or one of the signs = and ;."""
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
"""A backslash in quotes, and a character, or the number of one in octal digits."""
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
"""What such characters stand for, as in java.io.StreamTokenizer; any other stands for itself."""

SecureDial = Callable[[str, int, str], Wire]
"""Opens a connection: (address, port, name), where the name is that of the host in its certificate. Raises OSError."""


class AuthenticationError(OSError):
    """The broker refuses the credentials, or its part of SASL is wrong."""


@dataclass(frozen=True)
class Credentials:
    """What the client authenticates with; `mechanism`: one of MECHANISMS."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class ClientSecurity:
    """How connections are secured: their TLS context, None for plain text; and credentials of SASL, None for no SASL."""

    tls: ssl.SSLContext | None = None
    credentials: Credentials | None = None


NO_SECURITY = ClientSecurity()


def secured(seconds: float, security: ClientSecurity = NO_SECURITY) -> SecureDial:
    """Return a dial for secured connections, which wait at most so many seconds for anything.

    `security`: their TLS and credentials, by default neither.
    """

    def dial(address: str, port: int, name: str) -> Wire:
        """Connect and authenticate; close the connection if that fails."""
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
        # The cause is left out (`from None`): what a broker sends may hold the password.
        why = shown(str(problem).replace(credentials.password, "***")) if str(problem) else "a connection that was closed"
        raise AuthenticationError(f"SASL {credentials.mechanism}: expected the broker to authenticate; seen {why}") from None


def _authenticate(wire: Wire, credentials: Credentials) -> None:
    """Exchange the messages of the SASL mechanism until it is done. Raises WireError where the broker refuses."""
    handshake = _request(wire, WireRequest("SaslHandshake", 1, {"mechanism": credentials.mechanism}), 1)
    if handshake["errorCode"]:
        raise WireError(
            f"error {handshake['errorCode']}; the broker has the mechanisms {', '.join(handshake['mechanisms'])}"
        )
    messages = _plain(credentials) if credentials.mechanism == "PLAIN" else _scram(credentials)
    # The generator is sent each response of the broker, yields the next message, and ends when the mechanism is done. The
    # handshake had correlation id 1; each message has the next one.
    message, correlation_id = next(messages), 1
    while True:
        correlation_id += 1
        response = _request(wire, WireRequest("SaslAuthenticate", 1, {"authBytes": message}), correlation_id)
        if response["errorCode"]:
            raise WireError(f"error {response['errorCode']}, {response['errorMessage']}")
        try:
            message = messages.send(response["authBytes"])
        except StopIteration:
            return


def _request(wire: Wire, call: WireRequest, correlation_id: int) -> WireMessage:
    """Send a request and return its response. Raises OSError, EOFError or WireError."""
    wire.send(request_frame(shipped_messages(), call, correlation_id, CLIENT))
    response, _ = read_response(shipped_messages(), call, correlation_id, wire.receive())
    return response


def _plain(credentials: Credentials) -> Generator[bytes, bytes, None]:
    """Yield the only message of the client by the mechanism PLAIN (RFC 4616)."""
    yield f"\0{credentials.username}\0{credentials.password}".encode()


def _scram(credentials: Credentials) -> Generator[bytes, bytes, None]:
    """Yield the two messages of the client by SCRAM (RFC 5802), and be sent the server's response to each.

    Raises WireError for a wrong response, such as the last one of a server that does not know the password.
    """
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
        """Return the error about the option `name`."""
        return UsageError(f"{visible(path)}: {name}: expected {expected}; seen {seen}")

    protocol = options.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise wrong("security.protocol", f"one of {', '.join(PROTOCOLS)}", shown(protocol))
    # The parts of a protocol's name are independent of each other: SASL for credentials, SSL for TLS.
    credentials = tls = None
    if protocol.startswith("SASL"):
        # GSSAPI, which Kafka's clients take by default, is none of these.
        mechanism = options.get("sasl.mechanism", "GSSAPI")
        if mechanism not in MECHANISMS:
            raise wrong("sasl.mechanism", f"one of {', '.join(MECHANISMS)}", shown(mechanism))
        # Kafka's clients have username and password in the JAAS configuration, librdkafka as sasl.username, sasl.password.
        login = {**options, **_jaas_options(options["sasl.jaas.config"])} if "sasl.jaas.config" in options else options
        username, password = (login.get(name, login.get(f"sasl.{name}", "")) for name in ("username", "password"))
        # Both are needed. PLAIN separates them by a zero byte, so neither may have one.
        if not username or not password or "\0" in username + password:
            example = 'org.apache.kafka..LoginModule required username="U" password="P";'
            raise wrong("sasl.jaas.config", f"{example} (or sasl.username and sasl.password)", "no such user and password")
        credentials = Credentials(mechanism, username, password)
    if protocol.endswith("SSL"):
        # Kafka's clients also read Java's own formats, which Python cannot.
        for store in ("truststore", "keystore"):
            kind = options.get(f"ssl.{store}.type", "PEM").upper()
            if kind != "PEM":
                pem = "keytool -exportcert -rfc" if store == "truststore" else "openssl pkcs12"
                raise wrong(f"ssl.{store}.type", f"PEM ({pem} makes one)", shown(kind))
        try:
            tls = _tls(options)
        except (OSError, ValueError) as problem:
            # The message of ssl names no file, so it is of no use; and the content of a PEM file may be secret.
            reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else "no PEM"
            raise wrong("ssl.*", "PEM files that can be read, and the password of the key", shown(reason)) from None
    return ClientSecurity(tls, credentials)


def _options(path: str) -> Mapping[str, str]:
    """Read the file of --command-config; return its options by the names that Kafka's clients use.

    Raises UsageError for an unknown option of security (rule 1 of this file), or a file that cannot be read.
    """
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
            names = ", ".join(sorted({*OPTIONS, *SAME_AS}))
            raise UsageError(f"{visible(path)}: expected of the options of security one of {names}; seen {shown(name)}")
    return options


def _jaas_options(jaas: str) -> Mapping[str, str]:
    """Return the options in a JAAS configuration of one login module: `module required name=value ... ;`.

    Returns none if it is not written like that.
    """
    # The first two tokens are the class of the module and its flag (`required`), the last is the sign ;.
    tokens = list(_jaas_tokens(jaas))
    assignments, end = tokens[2:-1], tokens[-1:]
    # Three tokens an option: its name, "=", its value.
    if end != [";"] or len(assignments) % 3 or assignments[1::3] != ["="] * (len(assignments) // 3):
        return {}
    return dict(zip(assignments[::3], assignments[2::3], strict=True))


def _jaas_tokens(jaas: str) -> Iterator[str]:
    """Yield the tokens of a JAAS configuration, without their quotes; stop early at a text that is no token."""
    position = 0
    while position < len(jaas.rstrip()):
        token = _JAAS_TOKEN.match(jaas, position)
        if token is None:
            return
        _, quoted, word, sign = token.groups()
        yield word or sign or _ESCAPE.sub(_unescaped, quoted)
        position = token.end()


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character that an escape of _ESCAPE stands for."""
    text = escape[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _CONTROL.get(text, text)


def _tls(options: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS context for these options, of TLS 1.2 or later. Raises OSError or ValueError."""
    location, text = options.get("ssl.truststore.location"), options.get("ssl.truststore.certificates")
    # Without either, Python trusts the certificates that the system trusts.
    context = ssl.create_default_context(cafile=location, cadata=text)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # As in Kafka's clients, an empty algorithm switches the check of the host's name off.
    context.check_hostname = options.get("ssl.endpoint.identification.algorithm", "https").lower() == "https"
    if "ssl.keystore.location" in options:
        # Without a password OpenSSL would ask for one on the terminal.
        password = options.get("ssl.key.password", "")
        context.load_cert_chain(options["ssl.keystore.location"], options.get("ssl.key.location"), lambda: password)
    return context


# ---------------------------------------------------------------------------------------------------------------------
# Which of the hosts that Metadata names are connected to.
#
# Rules of this part
#
# 1. Metadata is the broker's text: it may name a machine that only the prober can reach. So only the host that the user
#    named is connected to, unless the user allows others.
# 2. Then too, no link-local address and no other at which a cloud serves the credentials of its machines
#    (METADATA_SERVICES), and a loopback address only if the named host has one: behind it are the prober's own services.
# 3. An IPv4 address counts in whatever IPv6 address it is written: a translator or a tunnel would lead there.


METADATA_SERVICES = {
    ip_address("fd00:ec2::254"): "AWS",
    ip_address("fd20:ce::254"): "Google Cloud",
    ip_address("168.63.129.16"): "Azure",
    ip_address("100.100.100.200"): "Alibaba Cloud",
    ip_address("192.0.0.192"): "Oracle Cloud",
}
"""Those that are not link-local, by address."""

EMBEDDINGS = (
    (IPv6Network("::/96"), (96,)),  # IPv4-compatible (RFC 4291, 2.5.5.1)
    (IPv6Network("::ffff:0:0/96"), (96,)),  # IPv4-mapped (RFC 4291, 2.5.5.2)
    (IPv6Network("::ffff:0:0:0/96"), (96,)),  # IPv4-translated (RFC 2765)
    (IPv6Network("64:ff9b::/96"), (96,)),  # NAT64 (RFC 6052)
    (IPv6Network("64:ff9b:1::/48"), (48, 56, 64, 96)),  # NAT64 of a site (RFC 8215), with a prefix of one of these lengths
    (IPv6Network("2002::/16"), (16,)),  # 6to4 (RFC 3056)
    (IPv6Network("2001::/32"), (32,)),  # Teredo (RFC 4380): the server; the client's is inverted
)
"""Networks of IPv6 whose addresses have an IPv4 address in them, and the bits before it."""
RESERVED_FROM = 64
"""The eight bits from here on are never part of an IPv4 address, which goes on behind them (RFC 6052, 2.2)."""
ISATAP = (0x00005EFE, 0x02005EFE)
"""The bits before an IPv4 address at the end, in any network (RFC 5214)."""


def staying_with(host: str, dial: SecureDial, *, follow_metadata: bool) -> Dial:
    """Return a dial that connects only to `host`, which the user named; with `follow_metadata` also to other hosts.

    The dial raises OSError for a host that it refuses: rules 1 and 2 of this part.
    """

    def dial_if_allowed(named: str, port: int) -> Wire:
        """Connect to `named`, the host that the user or Metadata names. Raises OSError if that is refused, or fails."""
        # With errno 0, which is none, the text is the error's `strerror`.
        if not follow_metadata and named.lower() != host.lower():
            raise OSError(0, f"Metadata names the host {shown(named)}, not {host}; --follow-metadata goes there")
        if named.lower() == host.lower():
            return dial(named, port, named)
        addresses = _addresses(named, port)
        # Rule 2: a loopback address is connected to only if the user's own host has one.
        loopback_too = any(map(_is_loopback, addresses)) and any(map(_is_loopback, _addresses(host, port)))
        for address in addresses:
            refusal = _refusal(address) or ("a loopback address" if _is_loopback(address) and not loopback_too else "")
            if refusal:
                raise OSError(0, f"Metadata names the host {shown(named)}, {refusal}, which is not asked")
        # Connect to the addresses that were checked: resolved a second time, the name could have others.
        for address in addresses[:-1]:
            with suppress(OSError):
                return dial(address, port, named)
        # The error of the last address is the one that is raised.
        return dial(addresses[-1], port, named)

    return dial_if_allowed


def _addresses(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host, each once, without the scope that may follow the sign %. Raises OSError."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # The fifth item of an entry is the socket address, whose first item is the IP address.
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries))


def _refusal(address: str) -> str:
    """Return why an address is never connected to (rule 2 of this part), or "" if it may be."""
    for equivalent in _equivalents(address):
        if equivalent.is_link_local:
            return "a link-local address"
        if equivalent in METADATA_SERVICES:
            return f"the metadata service of {METADATA_SERVICES[equivalent]}"
    return ""


def _is_loopback(address: str) -> bool:
    """Return whether a connection to an address may end at this machine."""
    # To connect to the unspecified address is to connect to this machine.
    unspecified = address in {"0.0.0.0", "::", "::ffff:0.0.0.0"}
    return unspecified or any(equivalent.is_loopback for equivalent in _equivalents(address))


def _equivalents(address: str) -> Iterator[IPv4Address | IPv6Address]:
    """Yield an address, and the IPv4 addresses that may be embedded in it: rule 3 of this part."""
    parsed = ip_address(address)
    yield parsed
    if isinstance(parsed, IPv4Address):
        return
    bits = int(parsed)
    for network, prefix_lengths in EMBEDDINGS:
        if parsed in network:
            yield from (IPv4Address(_embedded(bits, prefix_length)) for prefix_length in prefix_lengths)
    if (bits >> 32) & 0xFFFFFFFF in ISATAP:
        yield IPv4Address(bits & 0xFFFFFFFF)
    # Teredo has the pair (server, client). EMBEDDINGS has found the server; Python inverts the bits of the client.
    if parsed.teredo is not None:
        _, client = parsed.teredo
        yield client


def _embedded(bits: int, prefix_length: int) -> int:
    """Return the IPv4 address, as a number, behind the first `prefix_length` of the 128 bits of an IPv6 address."""
    if prefix_length <= RESERVED_FROM:
        # Drop the eight reserved bits: the last 56 bits go up by eight.
        bits = bits >> 64 << 64 | (bits & ((1 << 56) - 1)) << 8
    return (bits >> (96 - prefix_length)) & 0xFFFFFFFF
