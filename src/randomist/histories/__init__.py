"""What was told, in columns, and sums over it."""
