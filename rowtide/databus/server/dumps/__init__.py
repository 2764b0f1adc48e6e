"""Dumps: all rows at one position of the binlog, for clients that begin with them.

::

    snapshot ──► dumping ──► folder ──► tcp ──► clients
                    └──► ZooKeeper: name, position, offset

===============  ====================================================
``dumping``      when dumps are made and announced
``publication``  whether the topic has all events that a dump covers
``snapshot``     makes dumps of the connector's snapshots
``tcp``          serves dumps to clients
``folder``       the files of dumps
``source``       the contents of a dump
===============  ====================================================
"""
