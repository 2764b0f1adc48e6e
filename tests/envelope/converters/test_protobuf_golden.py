"""Everything that Confluent's ProtobufConverter made of the recorded records: schemas and bytes."""

import re
from collections import Counter

import pytest

from rowtide.envelope.converters.protobuf import ProtobufConverter
from rowtide.envelope.converters.registry import SubjectNames
from rowtide.envelope.protobuf.messages import ProtobufFormat
from tests.envelope.converters.test_avro_golden import SUBJECTS, record
from tests.support.recordings.converted import RecordedRegistry, conversions, files, subjects

OPTIONS = {
    "optional-for-nullables": {"optional_for_nullables": True},
    "wrapper-for-nullables": {"wrapper_for_nullables": True},
    "both-for-nullables": {"optional_for_nullables": True, "wrapper_for_nullables": True},
    "scrub": {"scrub_invalid_names": True},
}
NAMES = [name for name in files("protobuf") if any(conversions("protobuf", name))]
DIFFERENT = {"geometry-and-vector": 2, "temporal-connect": 1}
"""How many records differ: JSON has lost the sign of -0.0, and a TIME of 24 hours became one of 0."""


def plain(text: str | None) -> str:
    """A schema without blanks, whose order of the parameters of decimals is that of a hash map in Java."""
    assert text is not None
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", NAMES)
def test_schemas_and_bytes_are_those_of_the_converter(name: str) -> None:
    option = name.rpartition(".")[2]
    registry = RecordedRegistry()
    settings = ProtobufFormat(replace_null_with_default=True, **OPTIONS.get(option, {}))
    converter = ProtobufConverter(registry, settings, SUBJECTS.get(option, SubjectNames.TOPIC))
    different = 0
    for given in conversions("protobuf", name):
        if given.error is not None:
            with pytest.raises(ValueError, match="not valid in Protobuf"):
                converter.data(record(given), given.side, [])
            continue
        data = converter.data(record(given), given.side, [])
        if given.data is None or data is None:
            assert data is given.data is None
            continue
        by_id = {number: text for text, number in registry.schemas.items()}
        assert data[0] == 0
        if option != "normalized":  # by the registry
            assert plain(by_id[int.from_bytes(data[1:5], "big")]) == plain(given.schema_text)
        if "additional_data" in (given.schema_text or ""):  # a map, whose order is that of a hash map in Java
            assert Counter(data[5:]) == Counter(given.data[5:])
        else:
            different += data[5:] != given.data[5:]
    assert different == DIFFERENT.get(name.removeprefix("options/").partition(".")[0], 0)


@pytest.mark.parametrize("option", SUBJECTS)
def test_subjects_are_those_of_the_strategy(option: str) -> None:
    name = f"options/keys.{option}"
    registry = RecordedRegistry()
    converter = ProtobufConverter(registry, ProtobufFormat(replace_null_with_default=True), SUBJECTS[option])
    for given in conversions("protobuf", name):
        converter.data(record(given), given.side, [])
    assert {subject: len(versions) for subject, versions in registry.subjects.items()} == subjects("protobuf", name)
