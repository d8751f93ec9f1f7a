"""The checks of lesson 06, one function an exercise."""
