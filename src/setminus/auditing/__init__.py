"""How much information a prediction holds about the groups that it should ignore, and whether the method applies."""
