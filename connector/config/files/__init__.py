"""Configuration files: reading properties, JSON and YAML, the environment, and references such as ``${env:NAME}``."""
