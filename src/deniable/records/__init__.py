"""Record by record: leave-one-out, ex-post privacy loss, privacy profiles."""
