"""Canal's clients and servers, the real ones and rowtide's, and recordings of them."""
