/**
 * From an id to the rows it stands in. Ids come from a database sequence and are nearly dense, so one array
 * holds the first row of each; where they are sparse (most of the sequence went to other rows) it is a map.
 * Further rows with the same id are linked to the first.
 */

export interface IdIndex {
  /** The first row with this id, or -1. */
  firstRow(id: number): number;
  /** For each row the next one with the same id, or -1. */
  readonly nextRows: Int32Array;
  readonly bytes: number;
}

/** Most slots of the array per id before a map takes less memory. */
const slotsPerId = 8;
/** What a JavaScript map of small integers takes per entry, measured on Node 20. */
const mapBytesPerEntry = 40;

/** Index over the ids of rows 0, 1, 2 …; a negative id stands for none. */
export function indexIds(ids: Int32Array): IdIndex {
  let highest = -1;
  for (const id of ids) highest = Math.max(highest, id);
  return highest < slotsPerId * ids.length + 1024 ? denseIndex(ids, highest) : sparseIndex(ids);
}

/** The first id that stands in two rows, or null. */
export function repeatedId(ids: Int32Array, { nextRows }: IdIndex): number | null {
  const row = nextRows.findIndex((next) => next >= 0);
  return row < 0 ? null : (ids[row] as number);
}

function denseIndex(ids: Int32Array, highest: number): IdIndex {
  const heads = new Int32Array(highest + 1).fill(-1);
  const nextRows = new Int32Array(ids.length).fill(-1);
  for (let row = ids.length - 1; row >= 0; row -= 1) {
    const id = ids[row] as number;
    if (id < 0) continue;
    nextRows[row] = heads[id] as number;
    heads[id] = row;
  }
  return { firstRow: (id) => heads[id] ?? -1, nextRows, bytes: heads.byteLength + nextRows.byteLength };
}

function sparseIndex(ids: Int32Array): IdIndex {
  const heads = new Map<number, number>();
  const nextRows = new Int32Array(ids.length).fill(-1);
  for (let row = ids.length - 1; row >= 0; row -= 1) {
    const id = ids[row] as number;
    if (id < 0) continue;
    nextRows[row] = heads.get(id) ?? -1;
    heads.set(id, row);
  }
  return {
    firstRow: (id) => heads.get(id) ?? -1,
    nextRows,
    bytes: mapBytesPerEntry * heads.size + nextRows.byteLength,
  };
}
