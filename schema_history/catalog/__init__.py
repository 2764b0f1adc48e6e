"""All databases and tables at a position, and how a statement changes them."""
