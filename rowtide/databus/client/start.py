"""Finds the start of a client: its offset file, a dump, or a position in the binlog.

===========  =========  ======================  ==============================================================
Offset file  firstload  mastername, masterpos   Start
===========  =========  ======================  ==============================================================
exists       any        any                     after the event in the file; everything else is ignored
missing      false      both                    at the event with this key, or else at the next one
missing      false      one is missing          an error, ``Wrong MasterName or MasterPos``
missing      true       ignored                 the dump that ZooKeeper names, then the events after it
===========  =========  ======================  ==============================================================
"""

from dataclasses import dataclass

from rowtide.databus.client.offset_file import ClientProgress, load
from rowtide.databus.client.settings import ClientSettings
from rowtide.databus.client.topic import EventTopic
from rowtide.databus.discovery import DumpDescriptor, KeepAlive
from rowtide.databus.errors import DatabusError, DiscoveryError, OverflowOffset, StartError
from rowtide.databus.events import Position
from rowtide.databus.zookeeper import DatabusNodes


@dataclass(frozen=True, slots=True)
class DumpStart:
    """A start with a dump.

    Attributes:
        dump: its description.
        host: address of the server that serves it.
        port: its port.
    """

    dump: DumpDescriptor
    host: str
    port: int


def find_start(settings: ClientSettings, topic: EventTopic) -> ClientProgress | DumpStart:
    """Return the start of a client.

    Raises:
        DatabusError: it cannot be determined, or events are missing there; the message says what to do.
    """
    found = load(settings.offset_file)
    if found is not None:
        _verify(found, topic, settings)
        return found
    if settings.first_load:
        start = _dump(settings)
        _verify_dump(start.dump, topic)
        return start
    if not settings.master_name or not settings.master_pos:
        raise StartError(
            f"Wrong MasterName or MasterPos: there is no offset file {settings.offset_file}, firstload is false, and "
            "mastername and masterpos are not both set. Set firstload=true to begin with a dump, or both to begin at "
            "an event"
        )
    wanted = Position(settings.master_name, settings.master_pos)
    try:
        event = topic.find(wanted)
    except OverflowOffset as error:
        raise OverflowOffset(f"Can Not Get Offset by Configuration: {error}") from error
    except DatabusError as error:
        raise StartError(f"Can Not Get Offset by Configuration: {error}") from error
    exact = event.position == wanted
    return ClientProgress(event.position, event.offset, inclusive=settings.start == "inclusive" or not exact)


def _verify(found: ClientProgress, topic: EventTopic, settings: ClientSettings) -> None:
    """Check that the topic is still that of the offset file, and that no event after the stored offset has expired."""
    extent = topic.extent()
    file = f"the offset file {settings.offset_file} ends at {found.position}, offset {found.offset}"
    needed = found.offset + (0 if found.inclusive else 1)
    if needed < extent.low:
        raise OverflowOffset(
            f"Overflow Offset: {file}, but the events of topic {topic.name} before offset {extent.low} have expired. "
            "Events are missing: remove the file and begin with firstload=true"
        )
    if needed > extent.high:
        raise OverflowOffset(
            f"Overflow Offset: {file}, but topic {topic.name} ends at offset {extent.high}: it was created again, or "
            "it is another cluster's. Check brokers and topic; if they are right, remove the file and begin with "
            "firstload=true"
        )
    if found.inclusive or found.offset < extent.low:
        return
    place = next(topic.keys(found.offset, found.offset + 1), None)
    if place is not None and place.position != found.position:
        raise StartError(
            f"{file}, but the event of topic {topic.name} at this offset has {place.position}: the file is another "
            "topic's, or the topic was created again. Check brokers, topic and replinfopath; if they are right, remove "
            "the file and begin with firstload=true"
        )


def _verify_dump(dump: DumpDescriptor, topic: EventTopic) -> None:
    """Before a dump is read, which may take long, check that the topic has the events after it."""
    extent = topic.extent()
    if extent.low <= dump.offset <= extent.high:
        return
    raise OverflowOffset(
        f"Overflow Offset: the events after dump {dump.file} begin at offset {dump.offset}, but topic {topic.name} "
        f"has the offsets from {extent.low} to {extent.high}: they have expired, or the topic was created again. "
        "Let the server make a new dump"
    )


def _dump(settings: ClientSettings) -> DumpStart:
    with DatabusNodes(settings.zookeeper, settings.zookeeper_root) as nodes:
        node = f"{settings.node_name}/{settings.topic}"
        text = nodes.get(node)
        if text is None:
            raise DiscoveryError(
                f"node {nodes.path(node)} does not exist in ZooKeeper: topic {settings.topic} has no dump. "
                "Check nodename and topic, and that a databus server has finished its first dump"
            )
        dump = DumpDescriptor.decode(text, nodes.path(node))
        if not settings.discover_server:
            return DumpStart(dump, settings.server_ip, settings.server_port)
        node = f"{settings.keep_alive_path}/{settings.topic}"
        text = nodes.get(node)
        if text is None:
            raise DiscoveryError(
                f"node {nodes.path(node)} does not exist in ZooKeeper: no databus server of topic {settings.topic} is "
                "alive. Check keepalivepath; or set mirror_enable=false, serverip and serverport"
            )
        server = KeepAlive.decode(text, nodes.path(node))
        return DumpStart(dump, server.ip, server.port)
