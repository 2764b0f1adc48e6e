"""Turn each batch into a pandas data frame per table. Needs the extra rowtide[arrow], and pandas."""

import rowtide

with rowtide.Engine.from_config("shop.properties") as engine:
    for batch in engine:
        for table, parts in batch.to_arrow().items():
            for part in parts:  # a new part begins where the structure of the table changes
                frame = part.to_pandas()
                print(table, len(frame), "changes, spent:", frame.groupby("__op")["spent"].sum().to_dict(), flush=True)
        batch.ack()
