"""What twinedge raises when it is handed something it cannot use."""


class InputError(ValueError):
    """Bad input from outside: a file, a setting, a name.

    The message is one line for a person: what is wrong, where (file, row, column), and what would
    be right. The command line prints it and exits with code 2.
    """
