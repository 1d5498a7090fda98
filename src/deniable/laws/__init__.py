"""The law of the privacy loss under each kind of noise, once and exact: what certificates and profiles rest on."""
