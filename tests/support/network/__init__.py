"""Connections that break, and TLS."""
