"""Parse the files of brokers: the layout of their lines, the lines, and what each line says."""
