"""How the arrays that all backends share are laid out: rows of tables, and bounds that keep float64 finite."""

from __future__ import annotations

import math

LOG_HUGE = 690.0
HUGE = math.exp(LOG_HUGE)  # stands for numbers beyond float64; an index as large is ordered by effective samples
FAR = 600.0  # a sample with a log-ratio above this keeps its column in log space
SMALL = 1e-250  # effective samples below this are summed in log space
EPOCH, ERA = 32, 1024  # plays after which sums are made anew from counts: of columns, and of what costs more

# Rows of the table that an estimate is made in, one column per decision.
VALUE, EFFECTIVE, THRESHOLD, WIDTH, COVERAGE, LOG_EFFECTIVE, CUT = range(7)
# Rows of `plays`: how often each source was played, as of now, of the last epoch, and of the last era.
NOW, LAST_EPOCH, LAST_ERA = range(3)
# Rows of `eta`.
ETA, LOG_ETA = range(2)
# Entries of `mixed`: columns of a block whose D is up to date, as of which epoch, with how many plays since.
DONE, AS_OF, APPLIED = range(3)
# Entries of `recent`: plays since the last era, how many eras and absorbed logs came before, then the sources played.
SINCE, ERAS, FIRST = range(3)
BINS = 66  # of payoffs: 0, 64 between, and 1
