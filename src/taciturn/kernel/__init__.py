"""All that sees exact statistics, noise or keys: what must be believed for how much noise there is."""
