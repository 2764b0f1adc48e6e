"""The content of a snapshot: the tables in their order, the statements, and the resulting structures."""
