/** One limit as its host sees it: how much of it is used, and what it holds back right now. */
export interface LimitUsage {
  /** The setting, as in the settings file: `bytesPerDay`. */
  readonly limit: string;
  /** Of `used` and `cap`. */
  readonly unit: string;
  /** Null: not measured, or the system does not tell. */
  readonly used: number | null;
  /** Null: there is none. */
  readonly cap: number | null;
  /** When it starts over, or is over; null: it does not by itself. */
  readonly resetsAt: Date | null;
  /** In a plain sentence; empty when it holds nothing back. */
  readonly holdingBack: string;
}

/** Of a limit by its name: with nothing measured, no cap and no end of its own, but for what is given. */
export function limitUsage(limit: string, holdingBack: string, given: Partial<LimitUsage> = {}): LimitUsage {
  return { limit, unit: "", used: null, cap: null, resetsAt: null, ...given, holdingBack };
}

/** Bytes as people read them: `1.5 MiB`. */
export function bytesInWords(bytes: number): string {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  const amount = bytes / 1024 ** power;
  return `${amount >= 100 || power === 0 ? Math.round(amount) : Math.round(amount * 10) / 10} ${units[power]}`;
}

const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
