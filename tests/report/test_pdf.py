"""A browser prints the page; without one, or with a broken one, that is said."""

import stat

import pytest

from setminus.errors import UserError
from setminus.report.page import write_page
from setminus.report.pdf import find_browser, print_page


def program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


def test_a_missing_browser_is_said_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SETMINUS_BROWSER", raising=False)
    with pytest.raises(UserError, match="needs Chromium or Chrome, and none is installed"):
        find_browser()
    monkeypatch.setenv("SETMINUS_BROWSER", "nothing")
    with pytest.raises(UserError, match="SETMINUS_BROWSER=nothing is no program"):
        find_browser()
    program(tmp_path / "chromium-browser", "true")
    monkeypatch.delenv("SETMINUS_BROWSER")
    assert find_browser() == str(tmp_path / "chromium-browser")


@pytest.mark.parametrize("script", ["echo it broke >&2; exit 3", "echo it broke >&2", "sleep 5"])
def test_a_browser_that_fails_is_said_to(monkeypatch, tmp_path, script):
    monkeypatch.setenv("SETMINUS_BROWSER", program(tmp_path / "browser", script))
    monkeypatch.setattr("setminus.report.pdf.SECONDS", 0.5)
    with pytest.raises(UserError, match="did not print" if "sleep" in script else "could not print the page: it broke"):
        print_page(tmp_path / "page.html", tmp_path / "page.pdf")


def test_the_page_is_printed_on_several_sheets(record, tmp_path):
    try:
        find_browser()
    except UserError:
        pytest.skip("there is no browser")
    write_page(tmp_path / "page.html", [record])
    print_page(tmp_path / "page.html", tmp_path / "page.pdf")
    content = (tmp_path / "page.pdf").read_bytes()
    assert content.startswith(b"%PDF") and content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") > 3
