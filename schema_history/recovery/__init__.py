"""From history records back to tables: the structure at a position."""
