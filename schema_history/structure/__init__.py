"""The effect of a statement on a table, as on the server: types, defaults, keys, and the server's own additions."""
