"""Turn each batch into a pandas data frame per table. Needs the extra rowtide[arrow], and pandas."""

import rowtide

with rowtide.Engine.from_config("library.properties", table_include_list="shop.customers") as engine:
    for batch in engine:
        for table, parts in batch.to_arrow().items():
            for part in parts:  # one, or several if the table is altered
                frame = part.to_pandas()
                spent = frame.groupby("__op")["spent"].sum().to_dict()
                print(table, len(frame), "changes, spent:", spent)
        batch.ack()
