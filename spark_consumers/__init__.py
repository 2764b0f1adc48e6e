"""Spark jobs that turn topics into tables.

The modules without Spark: ``errors``, ``naming``, ``spark_types``, ``conversion``, ``versions``, ``evolution``,
``offsets``, ``state``, ``settings``. They decide; the others (``session``, ``kafka``, ``files``, ``records``,
``changes``, ``fold``, ``formats``, ``job``, ``cli``) let Spark do it.
"""
