"""Debezium's Filter and ContentBasedRouter; the records and results are those of its FilterTest and RouterTest."""

import pickle
from dataclasses import replace

import pytest

from rowtide.envelope.schema import INT32, STRING, Schema, struct
from rowtide.envelope.transforms import ConnectRecord, Header, TransformConfigurationError, TransformError
from rowtide.envelope.transforms.chain import TransformChain
from rowtide.envelope.transforms.groovy import NotTranslatableError, translated
from tests.support.transforms import chain_from_properties

ROW = struct("dummy.Value", {"id": Schema("int8"), "name": STRING}, optional=True)
ENVELOPE = struct("dummy.Envelope", {"before": ROW, "after": ROW, "op": STRING})


def record(op: str, number: int, topic: str = "dummy1") -> ConnectRecord:
    row = {"id": number, "name": "myrecord"}
    value = {"before": row if op == "d" else None, "after": None if op == "d" else row, "op": op}
    return ConnectRecord(topic, None, None, None, ENVELOPE, value, (Header("idh", INT32, number),))


CREATED, DELETED_1, DELETED_2 = record("c", 1), record("d", 1), record("d", 2)
TOMBSTONE = replace(CREATED, value=None, value_schema=None)


def chain(kind: str, **options: str) -> TransformChain:
    properties = {"transforms": "t", "transforms.t.type": f"io.debezium.transforms.{kind}"}
    named = {"language": "python", **options}
    return chain_from_properties(
        properties | {f"transforms.t.{name.replace('_', '.')}": value for name, value in named.items()}
    )


def problems(kind: str, **options: str) -> list[tuple[str, str]]:
    with pytest.raises(TransformConfigurationError) as caught:
        chain(kind, **options)
    return [(problem.property.removeprefix("transforms.t."), problem.message) for problem in caught.value.problems]


CONDITION = "value.op != 'd' or value.before.id != 2"
EXPRESSION = "'nulls' if value is None else 'ones' if get(value.before, 'id') == 1 else None"


def test_a_filter_keeps_the_records_for_which_its_condition_is_true() -> None:
    found = chain("Filter", condition=CONDITION)
    assert [found.records(one) for one in (CREATED, DELETED_1, DELETED_2)] == [[CREATED], [DELETED_1], []]
    assert chain("Filter", condition="header.idh.value == 1").records(DELETED_2) == []
    assert chain("Filter", condition="topic == 'dummy2'").records(CREATED) == []


def test_a_router_changes_the_topic_or_keeps_it() -> None:
    found = chain("ContentBasedRouter", topic_expression=EXPRESSION)
    assert [found.records(one)[0].topic for one in (DELETED_1, DELETED_2, CREATED)] == ["ones", "dummy1", "dummy1"]
    assert found.records(DELETED_1) == [replace(DELETED_1, topic="ones")]


@pytest.mark.parametrize(
    ("mode", "kept", "topics"),
    [("keep", 1, ["dummy1"]), ("drop", 0, []), ("evaluate", 0, ["nulls"]), ("KEEP", 1, ["dummy1"])],
)
def test_records_without_a_value(mode: str, kept: int, topics: list[str]) -> None:
    filtered = chain("Filter", condition="value is not None", null_handling_mode=mode).records(TOMBSTONE)
    assert len(filtered) == kept
    routed = chain("ContentBasedRouter", topic_expression=EXPRESSION, null_handling_mode=mode).records(TOMBSTONE)
    assert [one.topic for one in routed] == topics


def test_a_pattern_selects_topics() -> None:
    found = chain("Filter", condition="False", topic_regex="dum.*2", null_handling_mode="drop")
    assert found.records(CREATED) == [CREATED]
    assert found.records(TOMBSTONE) == [TOMBSTONE]
    assert found.records(record("c", 1, "dummy2")) == []
    assert found.records(replace(TOMBSTONE, topic="dummy2")) == []


def test_an_error_of_a_record_names_the_transform_the_topic_and_the_field() -> None:
    with pytest.raises(
        TransformError,
        match=r"transforms\.t: a record of topic dummy1: condition: value\.before\.id: value\.before is null",
    ):
        chain("Filter", condition="value.before.id == 1").records(CREATED)


@pytest.mark.parametrize("text", ["''", "'a b'", "'.'", "'x' + 'y' if topic == '' else topic + '/'"])
def test_a_text_that_is_no_name_of_a_topic_is_an_error(text: str) -> None:
    with pytest.raises(TransformError, match=r"topic\.expression: gave a string that is not a valid topic name"):
        chain("ContentBasedRouter", topic_expression=text).records(CREATED)


def test_the_transforms_can_be_pickled_for_the_processes_that_decode() -> None:
    found = pickle.loads(pickle.dumps(chain("Filter", condition=CONDITION, topic_regex="dummy.*")))
    assert found.records(DELETED_2) == []
    assert found == chain("Filter", condition=CONDITION, topic_regex="dummy.*")


def test_the_name_without_a_package_is_the_filter_of_kafka_connect() -> None:
    assert chain_from_properties({"transforms": "t", "transforms.t.type": "Filter"}).records(CREATED) == []


def test_all_problems_are_reported_together() -> None:
    found = problems("Filter", language="groovy", topic_regex="(", null_handling_mode="other", conditio="x")
    assert [name for name, _ in found] == ["condition", "topic.regex", "null.handling.mode", "language", "conditio"]
    ((name, message),) = problems("ContentBasedRouter", topic_expression="1")
    assert name == "topic.expression"
    assert message.startswith("1 gives a number, but the result must be a string or None. See ")


@pytest.mark.parametrize("language", ["jsr223.groovy", "jsr223.graal.js", "wasm.chicory"])
def test_another_language_is_answered_by_the_translation(language: str) -> None:
    ((name, message),) = problems("Filter", language=language, condition="value.op == 'u' && value.before.id == 2")
    assert name == "language"
    assert message == (
        f"must be python, because rowtide does not run {language}. Write "
        "condition=value.op == 'u' and value.before.id == 2"
    )


def test_what_has_no_translation_is_named() -> None:
    ((_, message),) = problems("Filter", language="jsr223.groovy", condition="value.after.tags.any { it == 'a' }")
    assert "Write condition again as an expression in Python's syntax; \"{ it == 'a' }\" cannot be" in message
    ((_, message),) = problems("Filter", language="jsr223.groovy", condition="operation != 'd'")
    assert "there is no variable operation" in message
    ((_, message),) = problems("Filter", language="wasm.chicory", condition="file:///filter.wasm")
    assert "Write condition again" in message


def test_groovy_in_the_language_python_is_answered_by_the_translation() -> None:
    ((name, message),) = problems("Filter", condition="value.op == 'u' && topic != null")
    assert name == "condition"
    assert message.endswith(". Did you mean value.op == 'u' and topic is not None?")


@pytest.mark.parametrize(
    ("groovy", "python"),
    [
        ("value.op == 'u' && value.before.id == 2", "value.op == 'u' and value.before.id == 2"),
        ("value.op != 'd' || value.before.id != 2", "value.op != 'd' or value.before.id != 2"),
        ("value == null ? 'nulls' : (value.before.id == 1 ? 'ones' : null)",
         "'nulls' if value is None else 'ones' if value.before.id == 1 else None"),
        ("header.idh.value == 1 && topic.startsWith('dummy')", "header.idh.value == 1 and topic.startswith('dummy')"),
        ("value?.after?.name == 'x'", "get(value, 'after', 'name') == 'x'"),
        ("value.after?.name", "get(value.after, 'name')"),
        ("value?.before.id == 1", "get(value, 'before').id == 1"),
        ("!value.after.ok", "not value.after.ok"),
        ("!(value.op == 'c') && true", "not value.op == 'c' and True"),
        ("topic.equals('x')", "topic == 'x'"),
        ("topic.equalsIgnoreCase('X')", "topic.lower() == 'X'.lower()"),
        ("value.after.name.toLowerCase().trim() == \"x\"", "value.after.name.lower().strip() == 'x'"),
        ("value.after.name.contains('x')", "'x' in value.after.name"),
        ("value.after.name =~ /a\\d\\/b/", "search('a\\\\d/b', value.after.name)"),
        ("topic ==~ 'a\\\\.b'", "fullmatch('a\\\\.b', topic)"),
        ("topic.matches('a.*')", "fullmatch('a.*', topic)"),
        ("value.getStruct('after').getInt32('id') > 5L", "value.after.id > 5"),
        ("value.after.price >= 3.20G", "value.after.price >= 3.2"),
        ("value.after['odd-name'] == 1", "value.after['odd-name'] == 1"),
        ("value.op in ['c', 'u']", "value.op in ('c', 'u')"),
        ("['c', 'u'].includes(value.op)", "value.op in ('c', 'u')"),
        ("value.op === 'c' && value.after !== null", "value.op == 'c' and value.after is not None"),
        ("value.after ?: value.before", "value.after or value.before"),
        ("\"orders.${value.after.country.toLowerCase()}\"", "f'orders.{value.after.country.lower()}'"),
        ("\"$topic.x\"", "f'{topic.x}'"),
        ("`${topic}-x`", "f'{topic}-x'"),
        ("\"it's\"", '"it\'s"'),
        ("return value.op == 'c';", "value.op == 'c'"),
        ("topic.substring(0, 3) + '-' + topic.length()", "topic[0:3] + '-' + len(topic)"),
        ("valueSchema.name() == 'x'", "valueSchema.name == 'x'"),
        ("(1 + 2) * -3 < 4", "(1 + 2) * -3 < 4"),
    ],
)  # fmt: skip
def test_a_translation(groovy: str, python: str) -> None:
    assert translated(groovy) == python


@pytest.mark.parametrize(
    ("groovy", "message"),
    [
        ("new Date()", "'Date' cannot be translated"),
        ("value.after.tags.any { it }", "'{ it }' cannot be translated"),
        ("def x = 1; x == 1", "'= 1; x == 1' cannot be translated"),
        ("value.after.name.foo()", "the method foo of value.after.name cannot be translated"),
        ("value.after.x instanceof String", "'instanceof' cannot be translated"),
        ("f(1)", "the call of f cannot be translated"),
        ("value.op == ", "'the end of the expression' cannot be translated"),
        ("(" * 200 + "1" + ")" * 200, "too deeply nested"),
        ("!" * 200 + "1", "too deeply nested"),
        ("007", "the octal number 007"),
        ("", "cannot be translated"),
    ],
)
def test_what_has_no_translation(groovy: str, message: str) -> None:
    with pytest.raises(NotTranslatableError) as caught:
        translated(groovy)
    assert message in str(caught.value)
