"""The checks of lesson 04, one function an exercise."""
