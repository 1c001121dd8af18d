"""The names of the library for type checkers and editors; `yomi/__init__.py` loads them when they are first used."""

from yomi import go as go
from yomi import shogi as shogi
from yomi.engine.board_game.definition import BoardGame as BoardGame
from yomi.engine.clients.client import EngineError as EngineError
from yomi.engine.color import BLACK as BLACK
from yomi.engine.color import WHITE as WHITE
from yomi.engine.reviews.review import Review as Review
from yomi.errors import ClosedError as ClosedError
from yomi.errors import Error as Error
from yomi.errors import IllegalMove as IllegalMove
from yomi.library.analysis import Analysis as Analysis
from yomi.library.commands import dataset as dataset
from yomi.library.commands import duel as duel
from yomi.library.commands import learn as learn
from yomi.library.commands import match as match
from yomi.library.commands import rate as rate
from yomi.library.commands import ratings as ratings
from yomi.library.commands import selfplay as selfplay
from yomi.library.commands import tune as tune
from yomi.library.engines import Engine as Engine
from yomi.library.environments import Environment as Environment
from yomi.library.environments import EnvironmentState as EnvironmentState
from yomi.library.environments import env as env
from yomi.library.evaluation import Evaluation as Evaluation
from yomi.library.external import ExternalEngine as ExternalEngine
from yomi.library.external import open_engine as open_engine
from yomi.library.position import Position as Position
from yomi.library.position import Result as Result
from yomi.library.reviews import review as review
from yomi.library.values import Clock as Clock
from yomi.library.values import Decision as Decision
from yomi.library.values import Limit as Limit
from yomi.library.values import MoveReport as MoveReport
from yomi.library.values import Report as Report
from yomi.library.values import Score as Score

__version__: str
