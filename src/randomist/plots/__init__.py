"""One look for every picture."""
