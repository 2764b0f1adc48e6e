"""All databases and tables, and the one way to change them: a statement that is executed on them."""
