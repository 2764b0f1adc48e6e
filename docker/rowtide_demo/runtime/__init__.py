"""What any such program needs: the screen, child processes, and Ctrl-C."""
