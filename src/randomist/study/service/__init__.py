"""Studies over HTTP: the application, who may do what, limits, metrics, and the server."""

from randomist.study.service.app import create_app
from randomist.study.service.auth import Tokens

__all__ = ["Tokens", "create_app"]
