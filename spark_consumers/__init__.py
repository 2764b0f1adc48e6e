"""Spark jobs that turn topics into tables.

The modules without Spark: ``errors``, ``naming``, ``spark_types``, ``conversion``, ``versions``, ``evolution``,
``offsets``, ``state``, ``settings``, ``properties``, ``outcome``. They decide; the others (``session``, ``driver``,
``source``, ``files``, ``records``, ``schemaless``, ``segments``, ``changes``, ``fold``, ``batch``, ``formats``,
``job``) let Spark do it. ``cli`` and ``report`` are for people.

Two seams are meant to be extended: :class:`rowtide.spark_consumers.formats.TableFormat` for other formats, and
:meth:`rowtide.spark_consumers.batch.TableBatch.apply`, which takes any micro-batch with a number, for streaming.
"""
