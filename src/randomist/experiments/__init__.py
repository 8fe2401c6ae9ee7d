"""Many runs at once: specs, the parallel runner, statistics, tables and figures. Needs the `run` extra."""
