"""Print every change of the captured tables, in the order of commits."""

import rowtide

with rowtide.Engine.from_config("library.properties") as engine:
    for batch in engine:
        for change in batch:
            print(change.op, change.table, change.key, change.before, change.after)
        batch.ack()
