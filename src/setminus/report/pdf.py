"""The page as a PDF, printed by Chromium or a browser of its family."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from setminus.errors import UserError

__all__ = ["find_browser", "print_page"]

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
SECONDS = 180


def find_browser() -> str:
    """The program of a browser that prints: the one that ``SETMINUS_BROWSER`` names, or the first that is installed.

    Raises
    ------
    UserError
        If there is none.
    """
    named = os.environ.get("SETMINUS_BROWSER")
    for name in (named,) if named else BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    raise UserError(
        f"--pdf needs a browser, and SETMINUS_BROWSER={named} is no program"
        if named
        else "--pdf needs Chromium or Chrome, and none is installed",
        do="install Chromium, name a browser with SETMINUS_BROWSER, or print the page yourself: leave --pdf out.",
    )


def print_page(page: Path, pdf: Path) -> None:
    """Print a page of `write_page` to a PDF file.

    Parameters
    ----------
    page : Path
        The HTML file. It loads nothing from elsewhere.
    pdf : Path
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="setminus-", ignore_cleanup_errors=True) as profile:
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={profile}",
            # the figures are drawn by a script
            "--virtual-time-budget=30000",
            "--no-pdf-header-footer",
            f"--print-to-pdf={pdf.absolute()}",
            page.absolute().as_uri(),
        ]
        # the sandbox refuses to run as root, as in most containers; the page is ours and loads nothing
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise UserError(
                f"{Path(browser).name} did not print the page within {SECONDS} seconds",
                do="try again, or print the page yourself: leave --pdf out.",
            ) from error
    if done.returncode or not pdf.is_file() or not pdf.stat().st_size:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise UserError(
            f"{Path(browser).name} could not print the page: {last[0]}",
            do="print the page yourself: leave --pdf out.",
        )
