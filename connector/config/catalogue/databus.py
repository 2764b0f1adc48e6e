"""Properties of the databus server, with the names of the original's settings."""

from rowtide.connector.config.catalogue.kinds import optional, text
from rowtide.connector.config.catalogue.property import Property

TITLE = "Databus"

TOPIC = Property(
    "databus.topic",
    optional(text()),
    None,
    "The topic of all messages of `rowtide databus`, which are in its partition 0.",
)
