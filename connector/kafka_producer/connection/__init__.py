"""Connections to brokers: addresses, settings, TLS, and one request at a time over a socket."""
