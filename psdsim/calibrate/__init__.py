"""From measured runs and a profile to a scenario: every figure fitted, with its uncertainty."""

from psdsim.calibrate.calibrate import Calibration, calibrate
from psdsim.calibrate.profile import Profile, read_profile
from psdsim.calibrate.runs import MeasuredRun, read_run

__all__ = ["Calibration", "MeasuredRun", "Profile", "calibrate", "read_profile", "read_run"]
