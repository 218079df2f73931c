"""A user's tables: opened, understood, encoded for models, and written whole or not at all."""
