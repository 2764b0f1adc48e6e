"""The client of databus.

=================  ===================================================================
``client``         reads dump and events, in order; acknowledgements
``aio``            the same for asyncio
``start``          the start position of a client
``dump``           reads a dump over TCP
``topic``          reads the topic, and finds positions in it
``offset_file``    the position of a client
``settings``       its settings
=================  ===================================================================
"""

from rowtide.databus.client.aio import AsyncClient
from rowtide.databus.client.client import Client
from rowtide.databus.client.settings import ClientSettings

__all__ = ["AsyncClient", "Client", "ClientSettings"]
