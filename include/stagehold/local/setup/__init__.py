"""`python -m stagehold.local.setup`: what `make setup` does after the Python packages are there."""
