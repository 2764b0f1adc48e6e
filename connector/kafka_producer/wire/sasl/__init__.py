"""SASL mechanisms: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. Pure: messages in, answers out."""
