"""The checks of lesson 05, one function an exercise."""
