"""MySQL's binary JSON: documents and their differences (``PARTIAL_JSON``) to text."""
