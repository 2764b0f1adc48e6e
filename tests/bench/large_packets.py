"""Measures how fast packets of large rows are received, in plain text and over TLS.

python -m tests.bench.large_packets
"""

import argparse
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docker"))

from rowtide_stack.servers.tls import TlsFiles

from rowtide.connector.protocol.packets import PacketBuffer

_LARGEST = 0xFFFFFF
_BYTES = 64 << 20
_MIB = (1, 16, 64, 256)


def framed(size: int) -> Iterator[bytes]:
    """The packets of a payload, as the server sends them."""
    while True:
        piece = min(size, _LARGEST)
        yield piece.to_bytes(3, "little") + b"\0" + bytes(piece)
        size -= piece
        if piece < _LARGEST:
            return


@contextmanager
def connection(tls: TlsFiles | None) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The server's and the client's end of a connection; the server must send before the client receives over TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    if tls is not None:
        accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        accepting.load_cert_chain(tls.folder / "server.pem", tls.folder / "server.key")
        server = accepting.wrap_socket(server, server_side=True, do_handshake_on_connect=False)
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        client = trusting.wrap_socket(client, do_handshake_on_connect=False)
    with closing(server), closing(client):
        yield server, client


def measure(size: int, tls: TlsFiles | None) -> float:
    """Receive payloads of a size; returns MB/s."""
    number = max(1, _BYTES // size)
    packets = list(framed(size))

    def send(sock: socket.socket) -> None:
        with suppress(OSError):
            for packet in packets * number:
                sock.sendall(packet)

    with connection(tls) as (server, client):
        sender = threading.Thread(target=send, args=(server,))
        sender.start()
        buffer, found = PacketBuffer(), 0
        begin = time.perf_counter()
        while found < number:
            found += len(buffer.received(client.recv_into(buffer.space())))
        seconds = time.perf_counter() - begin
        sender.join()
    return size * number / seconds / 1e6


def main() -> None:
    """Print a row of a table for each size."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tls = TlsFiles.make(Path(folder))
        print("| payload | plain MB/s | TLS MB/s |\n| --: | --: | --: |")
        for size in _MIB:
            rates = [max(measure(size << 20, files) for _ in range(3)) for files in (None, tls)]
            print(f"| {size} MiB | {rates[0]:.0f} | {rates[1]:.0f} |")


if __name__ == "__main__":
    main()
