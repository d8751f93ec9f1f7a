"""Trackers."""

from __future__ import annotations

from typing import Any


def make_trackers(names: str, folder: Any, config: Any) -> list[Any]:
    return []
