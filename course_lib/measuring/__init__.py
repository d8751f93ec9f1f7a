"""Speed by paired timing, costs by counting, and the stages of a step."""
