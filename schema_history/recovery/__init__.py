"""Recovery: rebuilds the structure of all tables at a position from the records of a schema history."""
