/**
 * From an id to the row (in the tree: the place) it stands in. Ids come from a database sequence and are nearly
 * dense, so it is one array by id; where they are sparse (most of the sequence went to other rows) it is the
 * rows sorted by id.
 */

export interface IdIndex {
  /** The row with this id, or −1. */
  firstRow(id: number): number;
  /** Besides the ids themselves. */
  readonly bytes: number;
}

/** Most array entries per id before the sorted rows take its stead. */
const entriesPerId = 4;
const alwaysDense = 1024;

/** Index over the ids of rows 0, 1, 2 …, none below 0. Throws a RangeError that names an id which appears twice. */
export function indexIds(ids: Int32Array): IdIndex {
  let highest = -1;
  for (const id of ids) if (id > highest) highest = id;
  return highest < entriesPerId * ids.length + alwaysDense ? denseIndex(ids, highest) : sparseIndex(ids);
}

function denseIndex(ids: Int32Array, highest: number): IdIndex {
  const rows = new Int32Array(highest + 1).fill(-1);
  for (let row = 0; row < ids.length; row += 1) {
    const id = ids[row] as number;
    if (rows[id] !== -1) refuse(id);
    rows[id] = row;
  }
  return { firstRow: (id) => rows[id] ?? -1, bytes: rows.byteLength };
}

function sparseIndex(ids: Int32Array): IdIndex {
  const byId = new Int32Array(ids.length).map((_, row) => row);
  byId.sort((a, b) => (ids[a] as number) - (ids[b] as number));
  for (let at = 1; at < byId.length; at += 1) {
    const id = ids[byId[at] as number] as number;
    if (id === ids[byId[at - 1] as number]) refuse(id);
  }
  return { firstRow: (id) => rowOf(ids, byId, id), bytes: byId.byteLength };
}

function rowOf(ids: Int32Array, byId: Int32Array, id: number): number {
  let low = 0;
  for (let high = byId.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((ids[byId[middle] as number] as number) < id) low = middle + 1;
    else high = middle;
  }
  const row = byId[low];
  return row !== undefined && ids[row] === id ? row : -1;
}

function refuse(id: number): never {
  throw new RangeError(`the subnet id ${id} appears twice`);
}
