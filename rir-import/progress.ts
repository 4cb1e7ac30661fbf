/** Where an import is, for a progress line: each phase counts from 0 to its own total. */
export interface ImportProgress {
  readonly phase: "read" | "nest" | "current" | "compare" | "write";
  /** Bytes on disk in `read`, rows in `current` and `write`, steps elsewhere. */
  readonly done: number;
  /** 0: not known beforehand. */
  readonly total: number;
  /** The file being read; empty in other phases. */
  readonly file: string;
  /** Records read so far. */
  readonly records: number;
}

export type OnProgress = (progress: ImportProgress) => void;
