"""The messages of a batch: split into schema and payload, grouped by schema, and cut where the key changes."""
