"""Release with a membership guarantee: couplings, noise laws, certificates."""
