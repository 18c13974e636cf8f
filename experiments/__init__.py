"""The paper, reproduced: experiments 1 to 5, every table and figure, with one command."""
