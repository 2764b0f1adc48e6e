"""The memory that a decoder process shares with its parent, in slots: events in, rendered outputs out.

It is in an unnamed file, so that nothing remains if a process is killed, and the size of ``/dev/shm`` in a container
does not limit it. A page takes memory only after its first use.
"""

import mmap
import os
import tempfile

INPUT_BYTES = 2 << 20
"""The space in a slot for the events of one chunk."""
OUTPUT_BYTES = 16 << 20
"""The space in a slot for the outputs of a part of this chunk."""
SLOTS = 2
"""The chunk in one slot is decoded while the other slot is read, and gets its next chunk."""

_SLOT_BYTES = INPUT_BYTES + OUTPUT_BYTES


def memory_file() -> int:
    """Return the descriptor of a new file for :class:`SharedMemory`; the caller closes it."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("rowtide-decoder")
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.ftruncate(file, SLOTS * _SLOT_BYTES)
    return file


class SharedMemory:
    """The slots.

    Args:
        file: the descriptor of the file.
    """

    def __init__(self, file: int) -> None:
        self._map = mmap.mmap(file, SLOTS * _SLOT_BYTES)
        self._view = memoryview(self._map)

    def input(self, slot: int) -> memoryview:
        """Return the space for events in a slot."""
        begin = slot * _SLOT_BYTES
        return self._view[begin : begin + INPUT_BYTES]

    def output(self, slot: int) -> memoryview:
        """Return the space for outputs in a slot."""
        begin = slot * _SLOT_BYTES + INPUT_BYTES
        return self._view[begin : begin + OUTPUT_BYTES]

    def close(self) -> None:
        """Unmap it. Slots that are still in use stay mapped until they are released."""
        self._view.release()
        try:
            self._map.close()
        except BufferError:  # the map is closed with its last slot
            return
