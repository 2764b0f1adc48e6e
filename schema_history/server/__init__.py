"""Everything except its text that determines a statement's meaning: server, character sets, Query event."""
