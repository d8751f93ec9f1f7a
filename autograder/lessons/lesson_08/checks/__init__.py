"""The checks of lesson 08, one function an exercise."""
