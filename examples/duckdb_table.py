"""Keep a DuckDB table equal to a MySQL table. Needs duckdb."""

import duckdb

import rowtide

database = duckdb.connect("shop.duckdb")
database.execute("CREATE TABLE IF NOT EXISTS customers (id INTEGER PRIMARY KEY, name TEXT, spent DECIMAL(10, 2))")
engine = rowtide.Engine.from_config("library.properties", table_include_list="shop.customers")
with engine:
    for batch in engine:
        database.begin()
        for change in batch:
            if change.after is None:
                database.execute("DELETE FROM customers WHERE id = ?", [change.key["id"]])
            else:
                row = [change.after["id"], change.after["name"], change.after["spent"]]
                database.execute("INSERT OR REPLACE INTO customers VALUES (?, ?, ?)", row)
        database.commit()
        # After the commit: if a crash comes in between, the batch is applied again, which changes nothing.
        batch.ack()
