"""What owning a tree of processes costs, against starting the process alone."""
