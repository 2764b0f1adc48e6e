"""SASL mechanisms: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER. Pure: messages in, answers out."""
