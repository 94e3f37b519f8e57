"""Facts about IR, changing nothing: uniformity, disjointness and bounds, with the terms that they reason about."""
