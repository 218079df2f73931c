"""Tables 1, 2 and 6: controlled style transfer."""
