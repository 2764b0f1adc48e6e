"""The servers, each with an address, a life cycle and a log."""
