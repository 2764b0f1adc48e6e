"""Records by HTTP POST, with retries."""

import logging
import threading
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rowtide.connector.backoff import Backoff
from rowtide.connector.delivery.errors import DeliveryError, DeliveryInterrupted
from rowtide.connector.delivery.sinks.json_lines import json_line
from rowtide.connector.delivery.sinks.record_sink import Record

log = logging.getLogger(__name__)

_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.5, 30.0
_ANSWER_S = 30.0
_LONGEST_RETRY_AFTER_S = 3600.0
"""The longest ``Retry-After`` of a server that is respected."""
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Status codes after which a retry may succeed; all others above 299 are final."""


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects: a redirected POST becomes a GET without records, which a server may well answer with 200."""

    def redirect_request(self, *_arguments: object) -> None:
        """Do not follow a redirect: it is a final answer."""


class HttpSink:
    """Posts records as JSON lines (``application/x-ndjson``), several in one request, one request after the other.

    Delivery is at least once: a request without a 2xx answer is sent again, with growing pauses, until it succeeds. A
    final answer (400, 401, 404 …) ends the connector.

    Args:
        url: the URL to post to.
        headers: of every request, such as ``Authorization``.
        batch_size: the maximum number of records in one request.

    Attributes:
        problem: the reason why the current request is sent again; ``None`` if it is not.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, *, batch_size: int = 500) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"{url!r} is not an http or https URL")
        self._url = url
        self._headers = {"Content-Type": "application/x-ndjson", **(headers or {})}
        self._batch_size = batch_size
        self._opener = build_opener(_NoRedirects)
        self._closed = threading.Event()
        self.problem: str | None = None

    def write(self, records: Sequence[Record]) -> None:
        """Post records, and wait until the server has accepted them.

        Raises:
            DeliveryError: the server refuses them permanently.
            DeliveryInterrupted: the sink was closed while sending.
        """
        for begin in range(0, len(records), self._batch_size):
            self._post(b"".join(map(json_line, records[begin : begin + self._batch_size])))

    def flush(self) -> None:
        """Do nothing: the server has accepted every record that was written."""

    def close(self) -> None:
        """End a waiting ``write``."""
        self._closed.set()

    def _post(self, body: bytes) -> None:
        backoff = Backoff(_FIRST_RETRY_S, _LONGEST_RETRY_S)
        while True:
            if self._closed.is_set():
                raise DeliveryInterrupted(f"stopped before {self._place()} has accepted all records")
            request = Request(self._url, data=body, headers=self._headers, method="POST")
            wait = backoff.failed()
            try:
                with self._opener.open(request, timeout=_ANSWER_S):
                    self.problem = None
                    return
            except HTTPError as error:
                error.close()
                if error.code not in _PASSING:
                    raise DeliveryError(f"{self._place()} refuses records: {error.code} {error.reason}") from error
                reason = f"{error.code} {error.reason}"
                after = error.headers.get("Retry-After", "")
                wait = max(wait, min(float(after), _LONGEST_RETRY_AFTER_S)) if after.isdecimal() else wait
            except (URLError, HTTPException, OSError) as error:
                reason = str(getattr(error, "reason", None) or error)
            self.problem = f"{self._place()} does not accept records: {reason}"
            log.warning("%s; retrying in %.1f s", self.problem, wait)
            self._closed.wait(wait)

    def _place(self) -> str:
        """Return the URL without user, password and query, which may be secret."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
