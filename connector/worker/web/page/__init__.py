"""The page for browsers: its files, the events that keep it up to date, and what it asks of connectors."""
