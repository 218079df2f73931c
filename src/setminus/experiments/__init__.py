"""Named runs: a frozen config in, a record out; tables, figures and pages only read records."""
