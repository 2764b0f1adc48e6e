"""JSON exactly as Kafka Connect and Jackson write it, Java's numbers and headers included, and the way back."""
