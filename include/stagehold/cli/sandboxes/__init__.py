"""How does a command work in a sandbox, and which sandboxes are there?"""
