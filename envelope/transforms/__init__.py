"""Single message transforms, configured as in Kafka Connect: ``transforms=unwrap``, ``transforms.unwrap.type=…``.

A transform works on a :class:`ConnectRecord`, a record with its schemas before it becomes bytes, and gives another one
or none. What Debezium and Kafka Connect do, these do; where theirs stop without need, these go on.
"""

from rowtide.envelope.transforms.chain import (
    PREDICATES,
    TRANSFORMS,
    TransformChain,
    chain_from_properties,
    transform_chain,
)
from rowtide.envelope.transforms.options import Problem, TransformConfigurationError
from rowtide.envelope.transforms.record import ConnectRecord, Header, Predicate, Transform, TransformError

__all__ = [
    "PREDICATES",
    "TRANSFORMS",
    "ConnectRecord",
    "Header",
    "Predicate",
    "Problem",
    "Transform",
    "TransformChain",
    "TransformConfigurationError",
    "TransformError",
    "chain_from_properties",
    "transform_chain",
]
