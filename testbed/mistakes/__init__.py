"""What newcomers do wrong, and what they are told: `table.py` has it whole."""
