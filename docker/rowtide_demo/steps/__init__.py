"""The steps of the demo, each of which reports its progress and its result on the screen."""
