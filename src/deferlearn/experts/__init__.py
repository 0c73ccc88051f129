"""Several experts with limited time: skills, prices, assignment."""
