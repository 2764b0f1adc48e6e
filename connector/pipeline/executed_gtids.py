"""The GTID set of a stream: that of its start position, and every transaction since then."""

from rowtide.connector.protocol.events.classes import Gtid, MariadbGtidEvent, MariadbGtidList, PreviousGtids
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

Executed = tuple[str | None, str | None]
"""The set before a transaction and with it; ``None`` if it is not known."""


class ExecutedGtids:
    """The transactions of a stream.

    Args:
        start: the start position.
        connector: ``mysql`` or ``mariadb``.
        all_domains: whether MariaDB's set is considered complete from the start, as in Debezium. If the start has no
            GTIDs, it lacks the domains without a transaction since then.

    Attributes:
        text: the set as text; ``None`` as long as it is not complete.
    """

    def __init__(self, start: SourceOffset, connector: str, *, all_domains: bool = True) -> None:
        self._set = start.gtid_set(connector)
        # A stream without GTIDs at its start may get them later. The set is complete from the next file, which
        # begins with PREVIOUS_GTIDS or GTID_LIST; a set without the earlier transactions would make the server send
        # them again.
        self._known = start.gtids is not None or (all_domains and connector == "mariadb")
        self.text = str(self._set) if self._known else None

    def add(self, event: Gtid | MariadbGtidEvent) -> Executed | None:
        """Add a transaction; ``None`` if it has no GTID of this kind of server."""
        before = self.text
        if isinstance(event, Gtid):
            if event.anonymous or not isinstance(self._set, GtidSet):
                return None
            self._set.add(event.uuid, event.gno, event.tag)
        else:
            if not isinstance(self._set, MariadbGtidPosition):
                return None
            self._set.add(event.gtid)
        if self._known:
            self.text = str(self._set)
        return before, self.text

    def start_of_file(self, event: PreviousGtids | MariadbGtidList) -> None:
        """Take the transactions of earlier files, if the set is not complete."""
        if self._known:
            return
        if isinstance(event, PreviousGtids):
            self._set = event.gtids.copy()
        else:
            self._set = MariadbGtidPosition.parse(",".join(map(str, event.gtids)))
        self._known = True
        self.text = str(self._set)
