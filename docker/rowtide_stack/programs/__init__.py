"""The programs of the servers: their sources, and the cache in which they are stored."""
