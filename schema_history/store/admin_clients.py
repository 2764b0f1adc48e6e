"""Clients of Kafka's admin interface, shared by all users of the same settings.

A new client first looks for its broker, with a pause, and each client has three or four threads.
"""

import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from confluent_kafka.admin import AdminClient

from rowtide.schema_history.store.client_limits import CLIENT_LIMITS

_CLIENTS: WeakValueDictionary[frozenset[tuple[str, Any]], AdminClient] = WeakValueDictionary()
_LOCK = threading.Lock()


def admin_client(settings: Mapping[str, Any]) -> AdminClient:
    """Return a client with these settings of librdkafka. It is closed when its last user releases it.

    Raises:
        KafkaException: librdkafka refuses the settings.
    """
    limited = {**CLIENT_LIMITS, **settings}
    key = frozenset(limited.items())
    with _LOCK:
        client = _CLIENTS.get(key)
        if client is None:
            client = _CLIENTS[key] = AdminClient(limited)
        return client
