"""The time limits of Kafka's clients; pure.

A broker may vanish without notice: its machine loses power, or a firewall drops the connection. Only these limits then
make a client notice. They are far below ``transaction.timeout.ms``, so a transaction survives such a failure.
"""

CLIENT_LIMITS = {
    "socket.timeout.ms": "20000",
    "socket.connection.setup.timeout.ms": "10000",
}
"""librdkafka's names. Its own defaults are 60 and 30 seconds."""
