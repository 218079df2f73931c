"""The networks of the paper, each width an argument: build them with `initialization.seeded` to have them again."""
