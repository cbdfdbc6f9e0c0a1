"""The program around the library: settings, composition, start and stop, command line."""
