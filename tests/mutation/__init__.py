"""Mutation testing of the checks: small changes of right solutions, each of which the real check should refuse."""
