"""Print customers as objects. rowtide.models("library.properties", "shop_tables.py") has written their class."""

from shop_tables import Customers

import rowtide

with rowtide.Engine.from_config("library.properties", table_include_list="shop.customers") as engine:
    for batch in engine:
        for change in batch:
            customer = change.after_as(Customers)
            if customer is not None:
                print(customer.name, "has spent", customer.spent)
        batch.ack()
