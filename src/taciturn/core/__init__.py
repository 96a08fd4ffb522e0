"""Private learners: the protocols, the wiring, the loop, the schedule, the state and the releases."""
