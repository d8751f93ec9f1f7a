"""The checks of lesson 02, one function an exercise."""
