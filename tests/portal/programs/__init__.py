"""Programs on other loops, as users write them: each is run in a process of its own."""
