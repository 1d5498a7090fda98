"""Reading tables as people have them."""
