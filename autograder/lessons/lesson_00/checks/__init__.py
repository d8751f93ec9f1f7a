"""The checks of lesson 01, one function an exercise."""
