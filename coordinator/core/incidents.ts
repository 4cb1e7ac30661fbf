/**
 * Incidents: what a crawler (or a stranger) did that it should not have done, or that an operator should hear
 * of. Whoever notices one notes it; floods of the same become one row that counts.
 */
import type { CrawlerId } from "./ids.ts";

export interface Incident {
  /** Null: nobody knows who it was. */
  readonly crawlerId: CrawlerId | null;
  /** Kebab-case, such as copied-folder, wrong-result, flood. One word of the code, never of a message. */
  readonly kind: string;
  /** A plain sentence for the operator; what a crawler said in it is cut to 500 characters. */
  readonly words: string;
  /** Null: not of a connection. */
  readonly remoteAddress: string | null;
  readonly at: Date;
  /** How often it happened; 1 when it is left out. */
  readonly count?: number;
}

/** The same kind by the same crawler within one hour. */
export interface IncidentEntry {
  readonly crawlerId: CrawlerId | null;
  readonly crawler: string | null;
  readonly kind: string;
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** Of the last one. */
  readonly words: string;
  readonly remoteAddress: string | null;
}

export interface IncidentQuery {
  readonly since: Date;
  /** Of this crawler only. */
  readonly name?: string;
  readonly kind?: string;
  /** So many rows, the latest; 200 when it is left out. */
  readonly most?: number;
}

export interface IncidentStore {
  /** The same kind by the same crawler within one hour is one row that counts. */
  record(incident: Incident): Promise<void>;
  recordAll(incidents: readonly Incident[]): Promise<void>;
  /** The latest first. */
  list(query: IncidentQuery): Promise<IncidentEntry[]>;
  /** Removes rows whose last incident was before then; returns how many. */
  forget(before: Date): Promise<number>;
}

/** Where incidents are noted, without waiting: never fails, and a flood of notes is no flood of writes. */
export interface IncidentNotes {
  note(incident: Incident): void;
}

/** How long incidents are kept. */
export const incidentDays = 90;
