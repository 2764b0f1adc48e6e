"""Notices changes of secrets in the files that connectors read at their start."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping

from mode import Service

from rowtide.connector.config.catalogue.connection import RENEWED
from rowtide.connector.config.files.config_providers import names_files, resolve
from rowtide.connector.config.files.files import providers
from rowtide.connector.config.secret import masked_name

log = logging.getLogger(__name__)

_LOOK_S = 10.0

Running = Mapping[str, tuple[object, Mapping[str, str], Mapping[str, str] | None]]
"""Connectors by name: something that is another one after each start, the properties as written, and the values that
were read from files at that start (``Configuration.file_values``); ``None`` if it could not start."""


def values_in_files(written: Mapping[str, str]) -> dict[str, str] | None:
    """Return the values that a connector reads from files at its start, by property.

    ``None`` if one of them cannot currently be read.

    Args:
        written: the properties, with references.
    """
    named = {name: text for name, text in written.items() if name not in RENEWED and names_files(text, written)}
    definitions = {name: text for name, text in written.items() if name.startswith("config.providers")}
    found, problems = resolve({**definitions, **named}, providers(os.environ))
    return None if problems else {name: found[name] for name in named}


async def watch(service: Service, running: Callable[[], Running], restart: Callable[[str], Awaitable[None]]) -> None:
    """Restart connectors whose secrets have changed in their files, until a service stops.

    A change counts when it is seen twice: a file may be in the middle of being written.

    Args:
        service: the service.
        running: returns the connectors.
        restart: restarts a connector, which reads the files again.
    """
    used: dict[str, tuple[object, dict[str, str] | None]] = {}
    seen: dict[str, dict[str, str]] = {}
    while not service.should_stop:
        connectors = running()
        for name, (start, written, read) in connectors.items():
            now = await asyncio.to_thread(values_in_files, written)
            if name not in used or used[name][0] is not start:
                used[name] = start, now if read is None else dict(read)
            if now is not None and now != used[name][1]:
                if seen.get(name) == now:
                    changed = sorted(masked_name(key) for key in now if (used[name][1] or {}).get(key) != now[key])
                    log.info("connector %s starts again: the files of %s have changed", name, ", ".join(changed))
                    used[name] = start, now
                    await restart(name)
                seen[name] = now
        for name in used.keys() - connectors.keys():
            del used[name]
            seen.pop(name, None)
        await service.sleep(_LOOK_S)
