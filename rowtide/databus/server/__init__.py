"""The databus server: publishes changes in databus' form, and serves dumps.

================  ========================================================
``dumping``       when dumps are made and announced
``tcp``           serves dumps to clients
``registration``  this server in ZooKeeper
``folder``        the files of dumps
``source``        what a dump is made of
================  ========================================================
"""
