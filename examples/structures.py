"""Print the structure of each table where its changes begin, and wherever it is altered."""

import rowtide

known = {}
with rowtide.Engine.from_config("library.properties") as engine:
    for batch in engine:
        for change in batch:
            table = change.schema
            if known.get(table.id) is not table:
                known[table.id] = table
                columns = [f"{column.name} {column.column_type}" for column in table.columns]
                position = change.position
                print(f"{table.id} at {position.file}:{position.pos}: {', '.join(columns)}")
        batch.ack()
