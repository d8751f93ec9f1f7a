"""Health."""

from __future__ import annotations

from typing import Any


def health_table(records: Any) -> list[dict[str, Any]]:
    return []
