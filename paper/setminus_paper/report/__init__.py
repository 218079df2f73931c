"""Records of the reproduction to sections of a page."""
