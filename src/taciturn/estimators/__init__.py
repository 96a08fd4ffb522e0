"""Front doors: the tools that people know, on private streams; no privacy arithmetic lives here."""
