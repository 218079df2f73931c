"""How much a prediction still knows of what it should ignore, and whether the method applies at all."""
