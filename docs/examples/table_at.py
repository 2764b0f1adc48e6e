"""Print the columns of a table as they were at a point in time.

The program of another example must have run first: the schema history is its.
"""

import sys

import rowtide

table = rowtide.Engine.from_config("library.properties").table_at("shop.customers", at=sys.argv[1])
for column in table.columns if table else ():
    print(column.name, column.column_type, "NULL" if column.nullable else "NOT NULL")
