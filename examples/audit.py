"""Write every change exactly once into SQLite, however often the program is killed and started again."""

import sqlite3

import rowtide

database = sqlite3.connect("audit.sqlite")
database.execute(
    "CREATE TABLE IF NOT EXISTS audit "
    "(file TEXT, pos INTEGER, row INTEGER, op TEXT, record TEXT, PRIMARY KEY (file, pos, row, op))"
)
with rowtide.Engine.from_config("library.properties", snapshot_mode="no_data") as engine:
    for batch in engine:
        with database:  # one transaction
            for change in batch:
                position = change.position
                place = (position.file, position.pos, change.row, change.op)
                row = (*place, change.to_debezium())
                database.execute("INSERT OR IGNORE INTO audit VALUES (?, ?, ?, ?, ?)", row)
        batch.ack()  # what comes again after a crash has the same place, and is ignored
