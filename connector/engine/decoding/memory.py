"""Edge: the memory that a decoder process shares with its parent, in slots: events in, rendered outputs out.

A file without a name holds it, so that nothing is left behind if a process is killed, and the size of ``/dev/shm`` in a
container does not limit it. A page takes memory from its first use on.
"""

import mmap
import os
import tempfile

INPUT_BYTES = 2 << 20
"""The size of an input slot: the events of one chunk."""
OUTPUT_BYTES = 16 << 20
"""The size of an output slot: the outputs of a part of a chunk."""
INPUTS = OUTPUTS = 2
"""One slot is written while the other one is read."""

_SIZE = INPUTS * INPUT_BYTES + OUTPUTS * OUTPUT_BYTES


def memory_file() -> int:
    """The descriptor of a new file for :class:`SharedMemory`; the caller closes it."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("rowtide-decoder")
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.ftruncate(file, _SIZE)
    return file


class SharedMemory:
    """The slots.

    Args:
        file: the descriptor of the file.
    """

    def __init__(self, file: int) -> None:
        self._map = mmap.mmap(file, _SIZE)
        self._view = memoryview(self._map)

    def input(self, slot: int) -> memoryview:
        """An input slot."""
        return self._view[slot * INPUT_BYTES : (slot + 1) * INPUT_BYTES]

    def output(self, slot: int) -> memoryview:
        """An output slot."""
        begin = INPUTS * INPUT_BYTES + slot * OUTPUT_BYTES
        return self._view[begin : begin + OUTPUT_BYTES]

    def close(self) -> None:
        """Unmap it. Slots that are still in use stay mapped until they are released."""
        self._view.release()
        try:
            self._map.close()
        except BufferError:  # the map is closed with its last slot
            return
