"""``io.confluent.connect.protobuf.ProtobufConverter``: Protobuf with the id of its schema in a registry."""

from rowtide.envelope.converters.converter import Transcoding
from rowtide.envelope.converters.registry import RegistryConverter, SchemaIds, SchemaRegistration, Write, frame
from rowtide.envelope.protobuf.messages import (
    SCALARS,
    WELL_KNOWN,
    WRAPPERS,
    ProtobufFormat,
    protobuf_file,
)
from rowtide.envelope.protobuf.text import WRAPPERS_FILE, protobuf_text
from rowtide.envelope.protobuf.values import Encoder, message_encoder, protobuf_program, scalar_encoder
from rowtide.envelope.protobuf.wire import varint
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import Side

FIRST_MESSAGE = b"\x00"
"""Says that a value is the first message of its schema."""


class ProtobufConverter(RegistryConverter[ProtobufFormat]):
    """Protobuf with schema ids."""

    @property
    def tells_null(self) -> bool:
        """Whether null can be distinguished from zero and an empty text."""
        return self._settings.tells_null

    def transcoding(self, topic: str, side: Side, schema: Schema) -> Transcoding | None:
        """Return the program of a struct, unless the id of its schema is in a header."""
        if self._ids is not SchemaIds.PREFIX or schema.type != "struct":
            return None
        program = protobuf_program(protobuf_file(schema, self._settings).message, self._settings)
        if program is None:
            return None
        registered = self._registry.registered(*self.registration(topic, side, schema))
        return Transcoding(frame(self._ids, registered, side, FIRST_MESSAGE)(b"", []), program)

    def registration(self, topic: str, side: Side, schema: Schema) -> SchemaRegistration:
        """Return the registered schema; see :class:`~rowtide.envelope.converters.registry.Registering`."""
        return self._described(topic, side, schema)[0]

    def _writer(self, topic: str, side: Side, schema: Schema) -> Write:
        registration, encode, indexes = self._described(topic, side, schema)
        framed = frame(self._ids, self._registry.registered(*registration), side, indexes)
        return lambda value, added: framed(encode(value), added)

    def _described(self, topic: str, side: Side, schema: Schema) -> tuple[SchemaRegistration, Encoder, bytes]:
        """Return the schema, the encoder of its values, and the index of their message in the schema."""
        if schema.type == "struct":
            file = protobuf_file(schema, self._settings)
            text, encode, name = protobuf_text(file), message_encoder(file.message, self._settings), file.full_name
            indexes = FIRST_MESSAGE
        else:
            scalar = None if schema.name in WELL_KNOWN else SCALARS.get(schema.type)
            if scalar is None:
                raise ValueError(f"Protobuf has no {schema.name or schema.type} as a whole {side}")
            text, encode, (wrapper, place) = WRAPPERS_FILE, scalar_encoder(scalar), WRAPPERS[scalar]
            name, indexes = f"google.protobuf.{wrapper}", b"\x02" + varint(place << 1)
        return SchemaRegistration(self._subjects.subject(topic, side, name), "PROTOBUF", text), encode, indexes
