/** The arrays behind the table of delegations (`delegation-table.ts`): one value a row in each. */

const growth = 1.5;

export interface DelegationColumns {
  readonly subnetIds: Int32Array;
  readonly crawlerIds: Int32Array;
  /** NaN where unknown. */
  readonly rttsMs: Float32Array;
  readonly runnerUpIds: Int32Array;
  readonly runnerUpRttsMs: Float32Array;
  readonly flags: Uint8Array;
  /** Rows of the same crawler. */
  readonly next: Int32Array;
  readonly previous: Int32Array;
}

export function columnsFor(rows: number): DelegationColumns {
  return {
    subnetIds: new Int32Array(rows),
    crawlerIds: new Int32Array(rows),
    rttsMs: new Float32Array(rows),
    runnerUpIds: new Int32Array(rows),
    runnerUpRttsMs: new Float32Array(rows),
    flags: new Uint8Array(rows),
    next: new Int32Array(rows),
    previous: new Int32Array(rows),
  };
}

/** The same with room for half as many rows more. */
export function grownColumns(columns: DelegationColumns): DelegationColumns {
  const larger = columnsFor(Math.ceil(columns.subnetIds.length * growth));
  larger.subnetIds.set(columns.subnetIds);
  larger.crawlerIds.set(columns.crawlerIds);
  larger.rttsMs.set(columns.rttsMs);
  larger.runnerUpIds.set(columns.runnerUpIds);
  larger.runnerUpRttsMs.set(columns.runnerUpRttsMs);
  larger.flags.set(columns.flags);
  larger.next.set(columns.next);
  larger.previous.set(columns.previous);
  return larger;
}

/** Null where unknown. */
export function rttAt(rttsMs: Float32Array, row: number): number | null {
  const rttMs = rttsMs[row] as number;
  return Number.isNaN(rttMs) ? null : rttMs;
}
