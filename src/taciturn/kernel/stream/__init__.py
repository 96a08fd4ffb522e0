"""A private stream: rows, the unit of privacy, states, and the loop in which noise is added."""
