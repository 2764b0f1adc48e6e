"""What determines the meaning of a statement apart from its text: the server, its character sets, the Query event."""
