"""What a study looks like: the numbers behind the panels, and the page that draws them."""

from randomist.study.dashboard.data import snapshot
from randomist.study.dashboard.page import live_page, static_page

__all__ = ["live_page", "snapshot", "static_page"]
