"""The checks of lesson 07, one function an exercise."""
