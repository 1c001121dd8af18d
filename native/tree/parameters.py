"""The parameters of a tree: what its kernels read of the search's settings.

A field has the name of the setting that it holds. To add one, add it here and to the table of options
(engine/options.py), and read it in a kernel as `tree.parameters[0].NAME`.
"""

import numpy as np

PARAMETERS_DTYPE = np.dtype(
    (
        np.record,  # so that Python reads fields as kernels do
        np.dtype(
            [
                ("c_puct", np.float64),
                ("c_puct_log", np.float64),
                ("c_puct_base", np.float64),
                ("root_c_puct", np.float64),
                ("root_c_puct_base", np.float64),
                ("fpu_reduction", np.float64),
                ("root_fpu_reduction", np.float64),
                ("fpu_from_mean", np.bool_),  # first-play urgency starts from the mean of the playouts alone
                ("forced_playouts", np.float64),  # of a tried root move: sqrt(this * prior * playouts) at least
                ("halving", np.bool_),  # the root's playouts go to its moves in turn
                ("virtual_loss", np.float64),
                ("graph", np.bool_),  # lines that come to the same position share its node
                ("wide_root_noise", np.float64),  # how much wider the root is explored
                ("uncertainty", np.bool_),  # evaluations weigh by how sure the evaluator is of them
                ("bias_correction", np.float64),  # share of what was found below like nodes that corrects evaluations
                ("noise_pruning", np.float64),  # see native/tree/weighing.py
                ("value_weighting", np.float64),
                ("spread_scale", np.float64),  # how far the spread of the utilities scales exploration
                ("score_utility", np.float64),
                ("dynamic_score_utility", np.float64),
                ("score_unit", np.float64),  # points; the scale of the score's utility
                ("policy_temperature", np.float64),
                ("root_policy_temperature", np.float64),
                ("symmetry", np.int64),  # its number; RANDOM_SYMMETRY; without meaning if a leaf has a row for each
                ("rows_per_leaf", np.int64),  # 1, or 8: the average of all symmetries
                ("ownership", np.bool_),  # add up who owns the points
                ("solver", np.bool_),  # a game that is over with a value of exactly 1 or -1 proves what leads to it
            ],
            align=True,
        ),
    )
)
RANDOM_SYMMETRY = -1
