"""Golden tests: what must stay the same while the code behind the public interface changes."""
