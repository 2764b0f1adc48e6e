"""Messages of databus."""
