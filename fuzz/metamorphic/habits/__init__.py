"""What people do in a stage function beside making a plan: name, register, ask, keep, set, read and rebuild."""
