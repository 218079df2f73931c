"""What each command does, without a terminal: files in, files and records out."""
