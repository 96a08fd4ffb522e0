"""Compiled loops over plain arrays. They know no learner and no mechanism; each names the slow twin that defines it.

Import their modules where they are used: the first one brings Numba with it.
"""
