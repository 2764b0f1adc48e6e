"""The demo, ``docker/demo``: copies a shop's tables from MySQL to Kafka and Delta tables, and compares the result.

    shop.rows ──────► MySQL ──► rowtide run ──► Kafka ──► rowtide tables ──► Delta
    shop.workload ───┘  │                         ├─► topic_watch              │
                        └───────────────── rowtide verify ─────────────────────┘

`scenario` runs the steps in order. The demo calls the same commands as a user, on servers of `rowtide_stack`.
"""
