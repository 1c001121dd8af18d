"""yomi, a playing engine for Go and shogi. Its packages are yomi.engine, yomi.native, yomi.nets and yomi.bench."""

import os

__version__ = "0.1.0"

# A checkout has symbolic links to the packages here. An unpacked sdist, and a checkout on Windows, have the packages in
# the folder above instead.
if not os.path.isdir(os.path.join(__path__[0], "engine")):
    __path__.append(os.path.dirname(__path__[0]))
