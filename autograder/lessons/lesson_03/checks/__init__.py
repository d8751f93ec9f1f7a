"""The checks of lesson 03, one function an exercise."""
