"""The client's side of a replication session, from the first setting to the last event, without input or output."""
