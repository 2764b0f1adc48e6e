"""Performs the requests of a session on its destination."""

from collections.abc import Mapping

from rowtide.canal.server.destination import Destination
from rowtide.canal.server.errors import CanalError
from rowtide.canal.server.packets import Acknowledgement, Get, Request, Rollback, Subscription
from rowtide.canal.server.session import Answer, Session


def destination_of(request: Request, destinations: Mapping[str, Destination]) -> Destination:
    """Return the destination of a request.

    Raises:
        CanalError: there is none with this name.
    """
    found = destinations.get(request.destination)
    if found is None:
        raise CanalError(f"destination:{request.destination} should start first")
    return found


def perform(request: Request, session: Session, destinations: Mapping[str, Destination]) -> Answer | None:
    """Perform a request without waiting, and return the answer, if it has one.

    A ``Get`` returns the available entries; the caller first waits for a full batch.

    Args:
        request: of the session.
        session: makes the answer.
        destinations: by their names.
    """
    try:
        destination = destination_of(request, destinations)
        match request:
            case Get(fetch_size=size):
                batch = destination.get(request.client_id, size)
                return session.batch(batch.id, batch.entries)
            case Acknowledgement(batch_id=batch_id):
                destination.ack(request.client_id, batch_id)
                return None
            case Rollback(batch_id=batch_id):
                destination.rollback(request.client_id, batch_id)
                return None
            case Subscription(filter=filter_):
                destination.subscribe(request.client_id, filter_)
            case _:
                destination.unsubscribe(request.client_id)
        return session.succeeded()
    except CanalError as error:
        return session.failed(error)
