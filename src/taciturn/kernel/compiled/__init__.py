"""Fast paths: compiled loops over plain arrays, each of which names the slow twin that defines it.

`passes` has the tables from learners and mechanisms to these loops; the other modules know neither. Import them where
they are used: the first one imports Numba.
"""
