"""Batches of changes, as the engine returns them, also as Arrow record batches."""
