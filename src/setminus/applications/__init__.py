"""One folder for each section of the paper; they share the core, not each other."""
