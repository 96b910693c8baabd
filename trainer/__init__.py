"""PyTorch side: models, training and checkpoints."""
