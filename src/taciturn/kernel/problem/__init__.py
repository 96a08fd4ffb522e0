"""What is being learnt: losses, convex sets, and the public bounds on examples."""
