"""What a snapshot reads: the tables in their order, the statements, and the structures that they make."""
