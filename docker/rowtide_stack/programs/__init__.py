"""The programs of the servers: where they come from, and the cache in which they are kept."""
