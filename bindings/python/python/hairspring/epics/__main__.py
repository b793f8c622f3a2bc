"""`python -m hairspring.epics` is `hairspring-ioc`."""

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
