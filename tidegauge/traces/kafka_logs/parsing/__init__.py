"""What stands in the files: where they lie, how their lines are laid out, what each line says."""
