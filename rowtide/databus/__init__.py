"""The front end for databus' users: a server that publishes changes and dumps in databus' form, and a client for them.

===============  ====================================================================
``server``       publishes changes, and serves dumps
``client``       reads dump and events: start modes, acknowledgements, offset file
``zookeeper``    the nodes in ZooKeeper
``discovery``    what the nodes contain
``sql``          statements that repeat an event on another server
``events``       the messages: keys, rows, statements, structures of tables
``errors``       the errors
===============  ====================================================================

::

    from rowtide.databus.client import Client, ClientSettings

    settings = ClientSettings(brokers=("kafka:9092",), topic="shop", master_name="binlog.000003", master_pos=154)
    with Client(settings) as client:
        for event in client:
            print(event.header.position, event.event)
            client.ack(event)
"""
