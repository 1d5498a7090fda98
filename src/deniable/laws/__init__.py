"""Laws of noise, each once and exact: what releases add and what profiles of records measure."""
