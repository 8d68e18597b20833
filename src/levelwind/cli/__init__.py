"""The ``levelwind`` command: one module per subcommand, thin over the plain functions they print."""
