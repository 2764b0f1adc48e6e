"""Spark jobs that maintain tables from topics.

    job ─► batch ─► messages (schema and payload) ─► rows (changes, last row of each key) ─► formats
     │                           │
     ├─► kafka (offsets)         └─► columns (Connect schemas to Spark types)
     └─► state (stored offsets)

``jvm`` is the Java side of Spark. To extend, add a :class:`rowtide.spark_consumers.formats.TableFormat`,
or call :meth:`rowtide.spark_consumers.batch.TableBatch.apply` with the micro-batches of a streaming query.
"""
