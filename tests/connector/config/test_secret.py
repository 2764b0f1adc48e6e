"""Secrets are never displayed."""

import copy
import logging
import pickle

import pytest

from rowtide.connector.config import ConfigurationError, Secret, from_properties
from rowtide.connector.config.secret import MASK, Sanitizer

HIDDEN = "s3cr3t-t3xt"


def test_a_secret_is_masked_wherever_it_is_printed(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(HIDDEN)
    shown = [
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret!r:>20}",
        f"{secret:>12}",
        str([secret]),
        str({1: secret}),
    ]
    logging.getLogger().error("%s %r", secret, secret)
    assert all(HIDDEN not in text for text in [*shown, caplog.text])
    assert secret.reveal() == HIDDEN
    assert secret == Secret(HIDDEN)
    assert secret != Secret("x")
    assert {secret: 1}[Secret(HIDDEN)] == 1
    assert not Secret("")
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        copy.copy(secret)


@pytest.mark.parametrize(
    "name",
    [
        "database.password",
        "database.ssl.keystore.password",
        "producer.override.sasl.jaas.config",
        "schema.history.internal.consumer.sasl.jaas.config",
        "value.converter.basic.auth.user.info",
        "producer.ssl.key.pem",
        "sasl.oauthbearer.client.secret",
        "column.mask.hash.v2.SHA-256.with.salt.pepper",
    ],
)
def test_names_that_mean_secrets(name: str) -> None:
    assert Sanitizer().is_secret(name)


def test_names_that_do_not_mean_secrets() -> None:
    assert Sanitizer().shown("database.user", "dbz") == "dbz"
    assert not Sanitizer().is_secret("database.hostname")


def test_a_custom_pattern_adds_names() -> None:
    sanitizer = Sanitizer(".*hostname")
    assert sanitizer.masked({"database.hostname": "h", "database.password": "p"}) == {
        "database.hostname": MASK,
        "database.password": MASK,
    }


def test_no_secret_is_in_a_configuration_or_its_errors(valid: dict[str, str]) -> None:
    valid |= {
        "database.password": HIDDEN,
        "producer.override.sasl.jaas.config": f'PlainLoginModule required username="u" password="{HIDDEN}";',
        "producer.override.ssl.key.password": HIDDEN,
        "column.mask.hash.v2.SHA-256.with.salt." + HIDDEN: "a\\.b\\.c",
    }
    config = from_properties(valid)
    masked = config.masked_properties()
    assert HIDDEN not in f"{masked} {config}"
    assert config.database.password.reveal() == HIDDEN
    assert config.kafka.producer["sasl.password"] == HIDDEN
    with pytest.raises(ConfigurationError) as caught:
        from_properties(
            valid
            | {
                "database.port": "x",
                "producer.override.sasl.jaas.config": f"Unknown required password={HIDDEN};",
                "column.mask.hash.v2.SHA-256.with.salt." + HIDDEN: "(",
            }
        )
    assert HIDDEN not in str(caught.value)
    assert len(caught.value.problems) == 3
