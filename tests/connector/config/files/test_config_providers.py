"""References in values, as Kafka's ConfigProviders resolve them."""

from pathlib import Path

from rowtide.connector.config.files.config_providers import resolve
from rowtide.connector.config.files.files import providers


def test_values_from_a_file_a_directory_and_the_environment(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("db.password = p\\u00e4ss:word\nother=1\n")
    (tmp_path / "token").write_text("line one\n")
    known = providers({"DB_USER": "dbz"})
    resolved, problems = resolve(
        {
            "database.password": f"${{file:{tmp_path}/secrets.properties:db.password}}",
            "database.user": "${env:DB_USER}",
            "name": f"a-${{dir:{tmp_path}:token}}-${{env:DB_USER}}",
        },
        known,
    )
    assert resolved == {"database.password": "päss:word", "database.user": "dbz", "name": "a-line one\n-dbz"}
    assert problems == []


def test_a_provider_may_be_renamed() -> None:
    resolved, problems = resolve(
        {
            "config.providers": "vault",
            "config.providers.vault.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
            "name": "${vault:X}",
        },
        providers({"X": "y"}),
    )
    assert resolved["name"] == "y"
    assert problems == []


def test_unresolvable_references_are_problems_and_stay(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a=1\n")
    written = {
        "a": "${env:MISSING}",
        "b": f"${{file:{tmp_path}/f:nokey}}",
        "c": f"${{file:{tmp_path}/none:key}}",
        "d": "${aws:path:key}",
        "e": "${file:key}",
        "f": f"${{dir:{tmp_path}:../f}}",
    }
    resolved, problems = resolve(written, providers({}))
    assert resolved == written
    told = dict(problems)
    assert "environment variable MISSING is not set" in told["a"]
    assert "no key 'nokey'" in told["b"]
    assert "No such file" in told["c"]
    assert "unknown provider; known are file, env, dir" in told["d"]
    assert "${file:/path/to/file:key}" in told["e"]
    assert "needs a directory" in told["f"]


def test_text_without_a_colon_is_not_a_reference() -> None:
    written = {"topic.replacement": "${name}-$1", "x": "$5"}
    assert resolve(written, providers({})) == (written, [])
