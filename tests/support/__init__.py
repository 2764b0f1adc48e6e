"""What tests share: recordings, servers that act as a test says, processes of rowtide, and generators of statements."""
