"""Charts described once; one renderer draws them in the page, in notebooks and in picture files."""
