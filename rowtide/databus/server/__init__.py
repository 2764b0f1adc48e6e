"""The databus server: publishes changes in databus' form, and serves dumps.

==========  ========================================================
``source``  what a dump is made of
==========  ========================================================
"""
