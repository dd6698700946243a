"""The test kit for those who build on this library."""
