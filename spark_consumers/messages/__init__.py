"""The messages of a batch: key and envelope, the schemas that they bring, and parts with the same schema."""
