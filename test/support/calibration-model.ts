/** Fetch times with 4 ms of exponential noise and nothing else, a route that gets half as long again after four days. */
import type { CalibrationOptions } from "../lab/simulate/calibration/calibration.ts";

export const quietModel: CalibrationOptions = {
  hosts: 400,
  days: 4,
  fetchesPerDay: 24,
  noiseMs: 4,
  spikeShare: 0,
  lossShare: 0,
  dailyWave: 0,
  serverMs: 0,
  pageSpread: 0,
  fetchesPerConnection: 10,
  changeFactor: 1.5,
  changeMs: 0,
  seed: 1,
};
