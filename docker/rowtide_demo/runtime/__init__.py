"""General parts of the program: the screen, child processes, and Ctrl-C."""
