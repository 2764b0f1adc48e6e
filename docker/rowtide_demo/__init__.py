"""The demo, ``docker/demo``: a shop in MySQL becomes Kafka topics and Delta tables, and is proved to be the same there.

    shop (tables, rows) ──► loading ──► MySQL ──► rowtide run ──► Kafka ──► rowtide tables ──► Delta
    changes ────────────────────────────┘ │                        │                            │
                                          │              watching ─┘                            │
                                          └─► checksums in MySQL ──► proof ◄── checksums in Spark ┘

`story` tells it in order. It runs the commands that a user runs, on servers of `rowtide_stack`.
"""
