"""Hypothesis without timing noise; nothing else is shared."""

import hypothesis

hypothesis.settings.register_profile("repo", deadline=None, print_blob=True)
hypothesis.settings.load_profile("repo")
