"""What makes a release: the network's file, the bundles for each system, and their tests."""
