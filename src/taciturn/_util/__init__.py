"""Arrays, atomic file replacement, the cache folder and compilation: what every other package may use."""
