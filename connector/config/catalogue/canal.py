"""Properties of Canal's form of changes."""

from rowtide.connector.config.catalogue.kinds import boolean
from rowtide.connector.config.catalogue.property import Property

TITLE = "Canal"

GTIDS = Property(
    "canal.instance.gtidon",
    boolean(),
    False,
    "Whether the headers of entries have GTIDs: the executed set, and the transaction's own. For "
    "`rowtide replay --format canal`.",
)
