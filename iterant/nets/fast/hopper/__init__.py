"""One-dimensional convolutions for Hopper GPUs."""
