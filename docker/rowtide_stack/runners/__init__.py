"""The two ways to run a server: as a local process or as a container."""
