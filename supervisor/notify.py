"""Tell people what they have to know, through Apprise. Does I/O. Called from service and cli."""
