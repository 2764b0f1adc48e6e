"""The demo, ``docker/demo``: copies a shop's tables from MySQL to Kafka and Delta tables, and compares the result.

    shop (tables, rows) ──► loading ──► MySQL ──► rowtide run ──► Kafka ──► rowtide tables ──► Delta
    workload ───────────────────────────┘ │                        │                            │
                                          │           topic_watch ─┘                            │
                                          └─► checksums.mysql ──► comparison ◄── checksums.spark ┘

`scenario` runs the steps in order. The demo calls the same commands as a user, on servers of `rowtide_stack`.
"""
