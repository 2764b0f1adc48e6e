"""``BinLogStreamReader`` of mysql-replication, with rowtide's reader and decoder.

The constructor and the events are those of mysql-replication 1.0; the events are instances of its classes. ``reader``
follows the stream, ``structures`` has the tables at every position, ``rows`` and ``values`` decode row images,
``events`` makes the events, ``settings`` translates the settings of the connection.
"""

from rowtide.errors import needs_package

try:
    from rowtide.mysql_replication.reader import BinLogStreamReader
except ModuleNotFoundError as error:
    if (error.name or "").startswith("rowtide"):
        raise
    raise ModuleNotFoundError(
        f"rowtide.mysql_replication {needs_package(error, 'mysql-replication')}", name=error.name
    ) from error

__all__ = ["BinLogStreamReader"]
