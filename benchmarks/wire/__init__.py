"""How fast a child's lines become events: ours, others', and the least it could cost."""
