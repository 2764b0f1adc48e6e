"""Keys of one integer, whose digits are read without a JSON parser."""

import pytest

pytestmark = pytest.mark.spark

KEY_VERSION = 5


def keys(spark, texts: list[str], kind: str = "int32", name: str = "id") -> list[object]:
    """Return the key that is found in each text."""
    from rowtide.spark_consumers.columns.conversion import ConverterSettings
    from rowtide.spark_consumers.messages.versions import key_version
    from rowtide.spark_consumers.rows.changes import BatchSchemas, keyed_changes
    from rowtide.spark_consumers.rows.evolution import evolve

    schema = {"fields": [{"type": kind, "optional": True, "field": name}]}
    key = key_version(KEY_VERSION, schema, ConverterSettings(), "p.d.t")
    schemas = BatchSchemas(evolve("d.t", None, [key], [], None), {(KEY_VERSION, None): key}, [])
    rows = [(0, offset, text, KEY_VERSION, "c", "{}") for offset, text in enumerate(texts)]
    records = spark.createDataFrame(
        rows, "partition int, offset bigint, key string, key_version bigint, op string, value string"
    )
    return [row["key"][name] for row in keyed_changes(records, schemas, [name]).orderBy("offset").collect()]


def test_every_notation_of_an_integer_is_the_same_key(spark) -> None:
    texts = ['{"id":7}', '{"id": 7}', '{ "id":7 }', '{"other":1,"id":7}', '{"id":7,"other":1}', '{"id":-0}']
    assert keys(spark, texts) == [7, 7, 7, 7, 7, 0]


def test_the_ends_of_the_range_and_null(spark) -> None:
    least = -(2**63)
    assert keys(spark, [f'{{"id":{least}}}', '{"id":null}', "{}"], "int64") == [least, None, None]
    assert keys(spark, ['{"id":-32768}', '{"id":32767}'], "int16") == [-32768, 32767]


@pytest.mark.parametrize("name", ["a b", 'quo"te', "it's", "back\\slash", "naïve", "`tick`"])
def test_names_that_are_escaped(spark, name: str) -> None:
    import json

    assert keys(spark, [json.dumps({name: 12}), json.dumps({name: 12}, separators=(",", ":"))], name=name) == [12, 12]


@pytest.mark.parametrize("text", ['{"id":1.5}', '{"id":32768}', '{"id":"7"}', '{"id":+7}', '{"id":07}', '{"id":7'])
def test_a_text_that_is_not_such_a_key_is_an_error(spark, text: str) -> None:
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        keys(spark, [text], "int16")
