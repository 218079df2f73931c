"""The pages are run as tests; one of them on real data, as its marker says."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the page that needs Adult."""
    for item in items:
        if item.name == "when-the-formula-does-not-help.md":
            item.add_marker(pytest.mark.data)
