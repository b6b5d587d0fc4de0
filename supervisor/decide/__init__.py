"""Every decision opsladder takes. Pure: facts in, an answer with its reason out; time is an argument."""
