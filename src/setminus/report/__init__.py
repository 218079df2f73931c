"""Records in, one self-contained html page out: it works offline, and never imports torch."""
