"""Names with ``scrub.invalid.names``, recorded from Confluent's converters 7.0.16."""

import pytest

from rowtide.envelope.avro.schemas import AvroFormat, avro_schema_text
from rowtide.envelope.protobuf.messages import ProtobufFormat, protobuf_file
from rowtide.envelope.schema import INT32, struct


@pytest.mark.parametrize(
    ("name", "avro", "protobuf"),
    [
        ("*a", "_a", "_a"),
        ("a.b", "a_b", "a_b"),
        (".a", "_a", "_a"),
        ("_x", "_x", "x_x"),
        ("__y", "__y", "x__y"),
        ("9a", "x9a", "x9a"),
        (" a", "_a", "_a"),
        ("-a", "_a", "_a"),
        ("ü", "_C3_BC", "_C3_BC"),
        ("日本", "_E6_97_A5_E6_9C_AC", "_E6_97_A5_E6_9C_AC"),
        ("😀", "_F0_9F_98_80", "_F0_9F_98_80"),
        ("a~b", "a_7Eb", "a_7Eb"),
        ("a+b", "a_2Bb", "a_2Bb"),
        ("(a)", "_28a_29", "_28a_29"),
        ("$a", "_24a", "_24a"),
        ("a\tb", "a_09b", "a_09b"),
        ("\ud800z", "_3Fz", "_3Fz"),
    ],
)
def test_names_of_fields_and_of_packages(name: str, avro: str, protobuf: str) -> None:
    part = name.replace(".", "")
    one = struct(f"p.{part}.Row", {name: INT32})
    text = avro_schema_text(one, AvroFormat(scrub_invalid_names=True))
    assert f'"fields":[{{"name":"{avro}","type":"int"}}]' in text
    file = protobuf_file(one, ProtobufFormat(scrub_invalid_names=True))
    assert [field.name for field in file.message.fields] == [protobuf]
    if part == name:
        assert f'"namespace":"p.{avro}"' in text
        assert file.package == f"p.{protobuf}"
