"""Single message transforms, configured as in Kafka Connect: ``transforms=unwrap``, ``transforms.unwrap.type=…``.

A transform receives a :class:`ConnectRecord`, a record with its schemas before serialization, and returns another one
or ``None`` to drop it. The results are those of Debezium and Kafka Connect, but some records on which those fail are
processed.
"""

from rowtide.envelope.transforms.chain import (
    PREDICATES,
    TRANSFORMS,
    Plugin,
    TransformChain,
    transform_chain,
)
from rowtide.envelope.transforms.options import OptionProblem, TransformConfigurationError
from rowtide.envelope.transforms.record import ConnectRecord, Header, Predicate, Transform, TransformError

__all__ = [
    "PREDICATES",
    "TRANSFORMS",
    "ConnectRecord",
    "Header",
    "OptionProblem",
    "Plugin",
    "Predicate",
    "Transform",
    "TransformChain",
    "TransformConfigurationError",
    "TransformError",
    "transform_chain",
]
