"""MySQL and MariaDB servers, real and simulated, their events, and load for them."""
