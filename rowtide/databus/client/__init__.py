"""The client of databus.

=================  ===================================================================
``client``         dump and events, in order; acknowledgements
``aio``            the same for asyncio
``start``          where a client begins
``dump``           reads a dump over TCP
``topic``          reads the topic, and finds positions in it
``repeats``        finds events that a server has published twice
``offset_file``    how far a client has come
``settings``       its settings
=================  ===================================================================
"""

from rowtide.databus.client.aio import AsyncClient
from rowtide.databus.client.client import Client
from rowtide.databus.client.settings import ClientSettings

__all__ = ["AsyncClient", "Client", "ClientSettings"]
