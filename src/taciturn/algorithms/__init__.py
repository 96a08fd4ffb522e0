"""The paper's algorithms by name, and objective perturbation."""
