"""JSON exactly as Kafka Connect and Jackson write it, a parser for it, Java's numbers, and header values."""
