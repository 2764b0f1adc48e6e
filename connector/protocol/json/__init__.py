"""Converts MySQL's binary JSON to text: documents, and documents with differences (``PARTIAL_JSON``)."""
