"""Creates, describes and repairs topics through Kafka's admin client."""
