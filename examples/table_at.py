"""Print the columns of a table as they were at a point in time.

The program of another example must have run first: the schema history is from that program.
"""

import sys

import rowtide

if len(sys.argv) != 2:
    sys.exit("usage: python table_at.py POSITION, such as binlog.000042:1234, a GTID set, a time, or end")
table = rowtide.Engine.from_config("library.properties").table_at("shop.customers", at=sys.argv[1])
for column in table.columns:
    print(column.name, column.column_type, "NULL" if column.nullable else "NOT NULL")
