"""What a valid object is, as kube-apiserver has it: the rules for new pods, and its defaults."""
