"""Decides where a start resumes, whether it takes a snapshot, and which tables it reads."""
