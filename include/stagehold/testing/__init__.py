"""Tests of a project's own stages: fixtures for pytest, which the wheel registers."""
