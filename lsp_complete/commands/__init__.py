"""Commands of the command line that belong to no one package. Like `cli`, they may import from everywhere.

Each module has `add_parser(sub)`, which adds its parser and sets `run` to a function from the parsed arguments to the
exit status (None is 0); but `engine_load` is no command: the engine process names it as what makes its engine.
"""
