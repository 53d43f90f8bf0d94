"""What must hold, looked at from outside after every step. Production code knows nothing of it."""
