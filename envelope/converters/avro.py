"""``io.confluent.connect.avro.AvroConverter``: Avro with the id of its schema in a registry."""

from rowtide.envelope.avro.losses import losses
from rowtide.envelope.avro.names import record_name
from rowtide.envelope.avro.schemas import AvroFormat, avro_schema_text
from rowtide.envelope.avro.values import avro_encoder, avro_program
from rowtide.envelope.converters.converter import Transcoding
from rowtide.envelope.converters.registry import RegistryConverter, SchemaIds, SchemaRegistration, Write, frame
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import Side


class AvroConverter(RegistryConverter[AvroFormat]):
    """Avro with schema ids."""

    tells_null = True

    def transcoding(self, topic: str, side: Side, schema: Schema) -> Transcoding | None:
        """Return the program of a schema, unless it is written in another version or its id in a header."""
        if self._ids is not SchemaIds.PREFIX:
            return None
        registration = self.registration(topic, side, schema)
        registered = self._registry.registered(*registration)
        if registered.text != registration.text:
            return None
        opening = frame(self._ids, registered, side)(b"", [])
        return Transcoding(opening, avro_program(schema, self._settings))

    def registration(self, topic: str, side: Side, schema: Schema) -> SchemaRegistration:
        """Return the registered schema; see :class:`~rowtide.envelope.converters.registry.Registering`."""
        text = avro_schema_text(schema, self._settings)
        struct = schema.type == "struct" and schema.name is not None
        name = record_name(schema.name or "", scrub=self._settings.scrub_invalid_names).full if struct else None
        return SchemaRegistration(self._subjects.subject(topic, side, name), "AVRO", text)

    def _writer(self, topic: str, side: Side, schema: Schema) -> Write:
        registration = self.registration(topic, side, schema)
        registered = self._registry.registered(*registration)
        other = None if registered.text == registration.text else registered.text
        lost = () if other is None else losses(registration.text, other)
        if lost:
            raise ValueError(
                f"the latest version of subject {registration.subject} cannot represent the values: {'; '.join(lost)}. "
                "Register a version that can, or set use.latest.version=false"
            )
        encode = avro_encoder(schema, self._settings, other)
        framed = frame(self._ids, registered, side)
        return lambda value, added: framed(encode(value), added)
