"""What opsladder serves over HTTP: metrics and health. Does I/O. Started by ``service``; pages will join it."""
