/** Shows one limit to the host's administrator: how much of it is used, and what it blocks now. */
export interface LimitUsage {
  /** The name of the setting in the settings file, such as `bytesPerDay`. */
  readonly limit: string;
  readonly unit: string;
  /** Null if it is not measured or the system does not provide it. */
  readonly used: number | null;
  readonly cap: number | null;
  /** When the limit resets or ends. Null if it does not do so by itself. */
  readonly resetsAt: Date | null;
  /** A sentence about what the limit blocks now, or an empty string. */
  readonly holdingBack: string;
}

/** Fills in a limit without measurement, cap or reset, except for what is given. */
export function limitUsage(limit: string, holdingBack: string, given: Partial<LimitUsage> = {}): LimitUsage {
  return { limit, unit: "", used: null, cap: null, resetsAt: null, ...given, holdingBack };
}

export function bytesInWords(bytes: number): string {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  const amount = bytes / 1024 ** power;
  return `${amount >= 100 || power === 0 ? Math.round(amount) : Math.round(amount * 10) / 10} ${units[power]}`;
}

const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
