"""Queries about structures: a table at a point in time, its changes, and the effect of a statement."""
