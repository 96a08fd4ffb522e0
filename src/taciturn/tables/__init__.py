"""Maps of rows: each row's image depends on that row and on public settings alone."""
