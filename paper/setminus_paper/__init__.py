"""The reproduction of the paper: its rivals, experiments, tables, figures and claims."""
