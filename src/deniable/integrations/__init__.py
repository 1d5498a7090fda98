"""Foreign objects in, ours out: scikit-learn, Opacus, DpEvent."""
