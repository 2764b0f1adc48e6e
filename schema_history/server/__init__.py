"""What determines the meaning of a statement beside its text: the server, its character sets, the Query event."""
