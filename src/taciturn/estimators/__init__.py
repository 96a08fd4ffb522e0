"""Estimators for scikit-learn and river on private streams; there is no privacy arithmetic here."""
