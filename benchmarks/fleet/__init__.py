"""What sessions cost that are on at once, each of which brings a piece of text now and then."""
