"""An unmodified broker that listens with TLS and SASL only lets the probe in as it lets an independent client in."""

import time
import warnings
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.drive.kafka_broker.test_kafka_broker import build
from tests.drive.probe.cluster import HOST, PATIENCE, free_ports, listens, properties
from tests.drive.probe.test_security import MECHANISMS, PASSWORD, certificate, configuration, sasl_options
from tidegauge.drive.kafka_process.process import KafkaProcess
from tidegauge.drive.probe.run import CheckVerdict, probe, select_checks
from tidegauge.drive.probe.security import secured, security_in, staying_with
from tidegauge.util.errors import UsageError

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources
    import kafka
    from kafka.admin import KafkaAdminClient, UserScramCredentialUpsertion

pytestmark = pytest.mark.long
RELEASE, USER = "4.3.1", "alice"
CHECKS_OF = {"PLAIN": ["versions"], "SCRAM-SHA-256": ["fetch"], "SCRAM-SHA-512": ()}
COMMON = "org.apache.kafka.common.security"


def demanding(pem: Path, plain: int, secure: int, controller: int) -> dict[str, object]:
    """With a listener for itself, and one for clients."""
    options = properties(1, plain, controller)
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
    return options | {
        "listeners": f"{options['listeners']},SASL_SSL://{HOST}:{secure}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": pem,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{COMMON}.plain.PlainLoginModule required user_{USER}="{quoted}";',
        **{
            f"listener.name.sasl_ssl.{name.lower()}.sasl.jaas.config": f"{COMMON}.scram.ScramLoginModule required;"
            for name in MECHANISMS[1:]
        },
        "offsets.topic.replication.factor": 1,
    }


def as_client(mechanism: str, folder: Path, password: str) -> dict[str, object]:
    """The options of kafka-python."""
    return {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(folder / "ca.pem"),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
    }


def is_let_in(port: int, **options: object) -> bool:
    """Whether kafka-python may list the topics."""
    with suppress(kafka.errors.KafkaError):
        consumer = kafka.KafkaConsumer(bootstrap_servers=f"{HOST}:{port}", bootstrap_timeout_ms=5000, **options)
        consumer.topics()
        consumer.close()
        return True
    return False


def test_kafka_lets_in_who_has_the_password_and_nobody_else(tmp_path: Path) -> None:
    pem, (plain, secure, controller) = certificate(tmp_path), free_ports(3)
    with closing(KafkaProcess(build(RELEASE).class_path, demanding(pem, plain, secure, controller))) as process:
        process.start()
        listens(secure)
        admin = KafkaAdminClient(bootstrap_servers=f"{HOST}:{plain}")
        for name in MECHANISMS[1:]:
            assert admin.alter_user_scram_credentials([UserScramCredentialUpsertion(USER, name, PASSWORD)]) == {USER: None}
        admin.close()
        for mechanism in MECHANISMS:
            deadline = time.monotonic() + PATIENCE
            while not is_let_in(secure, **as_client(mechanism, tmp_path, PASSWORD)):
                assert time.monotonic() < deadline, f"kafka-python does not get in by {mechanism}"
            assert not is_let_in(secure, **as_client(mechanism, tmp_path, "wrong"))
            options = {"security.protocol": "SASL_SSL", "ssl.truststore.location": tmp_path / "ca.pem"}
            options["ssl.truststore.type"] = "PEM"
            security = security_in(configuration(tmp_path, options | sasl_options(mechanism, PASSWORD, USER)))
            found = probe(
                staying_with(HOST, secured(30.0, security), follow_metadata=False),
                (HOST, secure),
                1,
                select_checks(CHECKS_OF[mechanism]),
            )
            assert found.count(CheckVerdict.FAIL) == 0, [one.says for one in found.outcomes if one.says]
            assert found.count(CheckVerdict.PASS) > (90 if CHECKS_OF[mechanism] == () else 5)
            wrong = security_in(configuration(tmp_path, options | sasl_options(mechanism, "wrong", USER)))
            with pytest.raises(UsageError, match="error 58"):
                probe(staying_with(HOST, secured(30.0, wrong), follow_metadata=False), (HOST, secure), 1)
