"""What a start does before it streams: where it resumes, whether it takes a snapshot, and which tables it reads."""
