"""The time limits of Kafka's clients; pure.

A broker may vanish without a word: its machine loses power, or a firewall forgets the connection. Then nothing but
these limits says to a client. They are far below ``transaction.timeout.ms``, so that a transaction outlives it.
"""

CLIENT_LIMITS = {
    "socket.timeout.ms": "20000",
    "socket.connection.setup.timeout.ms": "10000",
}
"""librdkafka's names. Its own defaults are 60 and 30 seconds."""
