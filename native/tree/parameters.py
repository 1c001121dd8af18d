"""Search parameters that the kernels of a tree read, as `tree.parameters[0].NAME`.

A field has the name of its setting. To add one, add it here and to the options (engine/options.py).
"""

import numpy as np

PARAMETERS_DTYPE = np.dtype(
    (
        # A np.record, so that Python reads fields as kernels do.
        np.record,
        np.dtype(
            [
                ("c_puct", np.float64),
                ("c_puct_log", np.float64),
                ("c_puct_base", np.float64),
                ("root_c_puct", np.float64),
                ("root_c_puct_base", np.float64),
                ("fpu_reduction", np.float64),
                ("root_fpu_reduction", np.float64),
                ("fpu_from_mean", np.bool_),  # first-play urgency: from the mean utility alone
                ("forced_playouts", np.float64),  # a tried root move gets at least sqrt(this * prior * playouts)
                ("halving", np.bool_),  # the root distributes playouts evenly
                ("virtual_loss", np.float64),
                ("graph", np.bool_),  # transpositions share a node
                ("wide_root_noise", np.float64),  # widens exploration at the root
                ("uncertainty", np.bool_),  # weight evaluations by the evaluator's predicted error
                ("bias_correction", np.float64),  # share of the mean error that is corrected: native/tree/bias.py
                ("noise_pruning", np.float64),  # native/tree/child_weights.py
                ("value_weighting", np.float64),
                ("spread_scale", np.float64),  # how strongly the spread of utilities scales exploration
                ("score_utility", np.float64),
                ("dynamic_score_utility", np.float64),
                ("score_unit", np.float64),  # points; scale of the score utility
                ("policy_temperature", np.float64),
                ("root_policy_temperature", np.float64),
                ("symmetry", np.int64),  # a symmetry or RANDOM_SYMMETRY; unused if rows_per_leaf is 8
                ("rows_per_leaf", np.int64),  # 1, or 8 to average all symmetries
                ("ownership", np.bool_),  # sum up ownership
                ("solver", np.bool_),  # prove nodes from finished games of value 1 or -1
            ],
            align=True,
        ),
    )
)
RANDOM_SYMMETRY = -1
