"""Opens temporary files for the events of large transactions."""

import logging
import tempfile
from typing import IO

log = logging.getLogger(__name__)

_BUFFER_BYTES = 1 << 20


def temporary_file() -> IO[bytes]:
    """Open an unnamed file in the folder for temporary files (``TMPDIR``): nothing remains there after a crash."""
    log.info("a large transaction is held in a file in %s until its end", tempfile.gettempdir())
    return tempfile.TemporaryFile(prefix="rowtide-", buffering=_BUFFER_BYTES)
