"""A fleet: workers on several machines that share connectors, with their configurations and statuses in Kafka.

Each worker is a Faust app, and the consumer group of the apps is the fleet: a connector belongs to the worker that has
its partition of the fleet's topic. Configurations and statuses are in the topics of a Kafka Connect cluster, in its
formats, so a fleet can take over the connectors of a cluster, and hand them back.
"""
