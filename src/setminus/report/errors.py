"""What the page refuses."""

from __future__ import annotations

__all__ = ["RecordError"]


class RecordError(ValueError):
    """A record that the page does not show; the text says why, and what to do."""
