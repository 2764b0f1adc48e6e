"""The shop: its tables, the rows to begin with, and the transactions that change them."""
