"""Every command with its options and help, by what it is for; the work is in the module each one imports. No I/O."""
