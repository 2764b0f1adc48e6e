"""canal-python: ``follow.py HOST PORT DESTINATION`` reads a destination until it is ended, over lost connections."""

import sys
import time

from canal.client import Client
from canal.protocol import EntryProtocol_pb2 as protocol

KINDS = {protocol.INSERT: "INSERT", protocol.UPDATE: "UPDATE", protocol.DELETE: "DELETE"}
out = sys.stdout
sys.stdout = sys.stderr  # the client prints


def show(*fields):
    out.write("\t".join(fields) + "\n")


def image(columns):
    return [r"\N" if column.isNull else column.value for column in columns]


def show_position(header):
    show("at", header.logfileName, str(header.logfileOffset))


def show_entry(entry):
    if entry.entryType != protocol.ROWDATA:
        show_position(entry.header)
        return
    change = protocol.RowChange()
    change.MergeFromString(entry.storeValue)
    if change.isDdl:
        show_position(entry.header)
    for row in change.rowDatas:
        kind, before, after = KINDS[change.eventType], image(row.beforeColumns), image(row.afterColumns)
        show("row", entry.header.tableName, kind, *before, "|", *after)


def follow(client, host, port, destination):
    client.connect(host, port)
    client.check_valid()
    client.subscribe(b"1001", destination.encode(), b".*\\.load_.*")
    show("connected")
    out.flush()
    while True:
        message = client.get_without_ack(100, timeout=200, unit=2)
        if not message["id"]:
            continue
        show("batch", str(message["id"]))
        for entry in message["entries"]:
            show_entry(entry)
        show("ack", str(message["id"]))
        out.flush()
        client.ack(message["id"])


while True:
    client = Client()
    try:
        follow(client, sys.argv[1], int(sys.argv[2]), sys.argv[3])
    except Exception as error:  # noqa: BLE001 - whatever the client raises
        show("lost", repr(error))
        out.flush()
        client.disconnect()
    time.sleep(0.2)
