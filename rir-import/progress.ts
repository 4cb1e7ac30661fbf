/** An import's progress: each phase counts from 0 to its own total. */
export interface ImportProgress {
  readonly phase: "read" | "nest" | "current" | "compare" | "write";
  /** Bytes on disk in `read`, rows in `current` and `write`, steps elsewhere. */
  readonly done: number;
  /** 0 when unknown in advance. */
  readonly total: number;
  readonly file: string;
  readonly records: number;
}

export type OnProgress = (progress: ImportProgress) => void;
