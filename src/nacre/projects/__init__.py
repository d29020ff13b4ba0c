"""Projects as a person looks after them: what each holds, its name, what it depends on, and two that are one."""
