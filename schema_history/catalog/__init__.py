"""All databases and tables at a position, and the effect of statements on them."""
