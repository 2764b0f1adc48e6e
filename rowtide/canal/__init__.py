"""Serves Canal's clients: its entries, protocol and configuration, with the same binlog and schema history.

========================  ====================================================================
``service``               the instances of a Canal configuration folder, and their server
``cluster``               servers that take over from each other, coordinated by ZooKeeper
``instance``              an instance: one source, whose entries go to clients or to Kafka
``configuration``         ``canal.properties`` and ``instance.properties``
``mq``                    messages for Kafka
``server``                Canal's server: batches for clients over TCP
``replay``                from binlog files to entries
``entries``               from the binlog to entries and FlatMessages
========================  ====================================================================
"""
