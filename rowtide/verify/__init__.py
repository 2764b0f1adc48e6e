"""Proves that a source and the topics of its connector have the same rows (``rowtide verify``)."""
