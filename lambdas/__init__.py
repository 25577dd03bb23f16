"""AWS entry points, a module a function: parse, call the library, answer."""

from lambdas.start import begin

begin()
