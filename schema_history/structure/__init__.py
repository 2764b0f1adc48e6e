"""What a server makes of a statement: types, defaults, keys and all that it adds by itself. Pure functions."""
