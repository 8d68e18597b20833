"""How the simulator's inner loop is compiled.

No function of the loop owns memory, so none counts references (``_nrt=False``): handing all tables from
function to function would otherwise cost fifty times as much as the simulation itself.

The cache of compiled code goes by the text of the file that holds the function called from Python, and does
not see changes in the files of what that function calls. So `kernel` and `interventions` carry a word for the
text of their parts, ``PARTS``, and a test tells the new word when a part has changed.
"""

from __future__ import annotations

from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inlined = njit(forceinline=True, nogil=True, error_model="numpy", _nrt=False)
