"""Batches of changes, as the engine hands them out, also as Arrow record batches."""
