"""The recorded output of Debezium, and how rowtide's is compared with it."""
