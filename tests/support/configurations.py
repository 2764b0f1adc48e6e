"""A complete configuration, to which tests add properties."""

__all__ = ["PROPERTIES"]

PROPERTIES = {
    "name": "inventory",
    "topic.prefix": "shop",
    "database.hostname": "127.0.0.1",
    "database.user": "dbz",
    "database.password": "geheim",
    "database.server.id": "5400",
    "bootstrap.servers": "127.0.0.1:9092",
    "schema.history.internal.kafka.topic": "history",
}
