"""Checks whether a server can continue from a stored position: ``rules`` decides, ``check`` queries the server."""
