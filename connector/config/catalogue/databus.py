"""Properties of the databus server, with the names of the original's settings."""

from rowtide.connector.config.catalogue.kinds import integer, names, optional, text
from rowtide.connector.config.catalogue.property import Property

TITLE = "Databus"

_NODE = text(r"[^/\s][^\s]*", "must be a path without a slash at its beginning")

TOPIC = Property(
    "databus.topic",
    optional(text(r"[a-zA-Z0-9_.\-]{1,249}", "is not a valid name of a topic")),
    None,
    "The topic of all messages of `rowtide databus`, which are in its partition 0.",
)
DUMP_ADDRESS = Property(
    "databus.monitorip",
    text(),
    "127.0.0.1",
    "The address at which dumps are served, and which clients find in ZooKeeper: one that they can reach.",
)
DUMP_PORT = Property(
    "databus.monitorport",
    integer(0, 65535),
    0,
    "The port at which dumps are served; 0 for a free one.",
)
DUMP_FOLDER = Property(
    "databus.data_dir", text(), "databus-dumps", "The folder of the dumps; it is created if it is missing."
)
DUMP_INTERVAL = Property(
    "databus.dumpclock",
    integer(0),
    86400,
    "How many seconds a dump is announced before a new one is made; 0 for as long as this server runs.",
)
ZOOKEEPER = Property(
    "databus.zkpath",
    names(),
    (),
    "ZooKeeper servers, `host:port`. With them, dumps are served, clients find the server, and several servers take "
    "over from each other.",
    default_text="",
)
ZOOKEEPER_ROOT = Property(
    "databus.zkroot", text("/.*", "must begin with a slash"), "/Databus", "The root of all nodes in ZooKeeper."
)
DUMP_NODE = Property("databus.nodename", _NODE, "DumpMeta", "The node of the descriptions of dumps, below the root.")
ALIVE_NODE = Property(
    "databus.keepalivepath", _NODE, "KeepAliveNode", "The node of the running server, below the root."
)
ALIVE_TIMEOUT = Property(
    "databus.masteralive_timeout",
    integer(1),
    60,
    "How many seconds an original databus server counts as alive after its last keep-alive. Servers of rowtide take "
    "over from each other as soon as ZooKeeper ends the session.",
)
