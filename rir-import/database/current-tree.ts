/**
 * Reads the database's tree and holders by COPY into flat columns, some forty bytes per subnet. Names are ids in the
 * text pool of the wanted state, so comparing names compares numbers.
 */
import type { PoolClient } from "pg";
import { type RangeColumns, sortedOrder } from "#coordinator/place/subnets/range-columns";
import { packCountry, type Registry, registries } from "#coordinator/place/subnets/subnet";
import { DatabaseError } from "#core/errors";
import { GrowingColumn, type TextPool } from "#core/text-pool";
import { type CopiedRow, readCopy } from "#db/copy";

/** One family's columns by row, with the database's ids. 0 stands for null. */
export interface CurrentFamily {
  readonly columns: RangeColumns;
  /** Rows by first address. Of those with an equal first address, the widest comes first. */
  readonly order: Int32Array;
  readonly ids: Int32Array;
  readonly parentIds: Int32Array;
  readonly holderIds: Int32Array;
  readonly countries: Uint16Array;
  readonly registries: Uint8Array;
  readonly names: Int32Array;
  readonly crosses: Uint8Array;
  /** The generation that removed the subnet, or 0 when the subnet is in force. */
  readonly removedIn: Int32Array;
}

export interface CurrentTree {
  readonly ipv4: CurrentFamily;
  readonly ipv6: CurrentFamily;
  readonly largestId: number;
}

const select = `
  select subnet_id, first_address, last_address, parent_id, holder_id, country, registry, name, crosses, removed_in
  from subnet`;

/** Includes removed subnets. `onRows` reports progress. */
export async function readCurrentTree(
  client: PoolClient,
  texts: TextPool,
  onRows: (rows: number) => void,
): Promise<CurrentTree> {
  const ipv4 = new CurrentColumns(4, texts);
  const ipv6 = new CurrentColumns(6, texts);
  let rows = 0;
  let largestId = 0;
  await readCopy(client, select, (row) => {
    (row.family(1) === 4 ? ipv4 : ipv6).add(row);
    largestId = Math.max(largestId, row.int32(0));
    rows += 1;
    if (rows % 50_000 === 0) onRows(rows);
  });
  onRows(rows);
  return { ipv4: ipv4.family(), ipv6: ipv6.family(), largestId };
}

const int32 = (length: number) => new Int32Array(length);
const uint32 = (length: number) => new Uint32Array(length);
const uint16 = (length: number) => new Uint16Array(length);
const uint8 = (length: number) => new Uint8Array(length);

class CurrentColumns {
  readonly #family: 4 | 6;
  readonly #words: 1 | 4;
  readonly #texts: TextPool;
  readonly #first = new GrowingColumn(uint32);
  readonly #last = new GrowingColumn(uint32);
  readonly #ids = new GrowingColumn(int32);
  readonly #parentIds = new GrowingColumn(int32);
  readonly #holderIds = new GrowingColumn(int32);
  readonly #countries = new GrowingColumn(uint16);
  readonly #registries = new GrowingColumn(uint8);
  readonly #names = new GrowingColumn(int32);
  readonly #crosses = new GrowingColumn(uint8);
  readonly #removedIn = new GrowingColumn(int32);

  constructor(family: 4 | 6, texts: TextPool) {
    this.#family = family;
    this.#words = family === 4 ? 1 : 4;
    this.#texts = texts;
  }

  add(row: CopiedRow): void {
    for (let word = 0; word < this.#words; word += 1) {
      this.#first.push(row.word(1, word));
      this.#last.push(row.word(2, word));
    }
    this.#ids.push(row.int32(0));
    this.#parentIds.push(row.isNull(3) ? 0 : row.int32(3));
    this.#holderIds.push(row.isNull(4) ? 0 : row.int32(4));
    this.#countries.push(row.isNull(5) ? 0 : packCountry(row.text(5)));
    this.#registries.push(registryIndex(row.text(6)));
    this.#names.push(this.#texts.intern(row.text(7)));
    this.#crosses.push(row.boolean(8) ? 1 : 0);
    this.#removedIn.push(row.isNull(9) ? 0 : row.int32(9));
  }

  family(): CurrentFamily {
    const columns = {
      family: this.#family,
      words: this.#words,
      count: this.#ids.length,
      first: this.#first.values(),
      last: this.#last.values(),
    };
    return {
      columns,
      order: sortedOrder(columns),
      ids: this.#ids.values(),
      parentIds: this.#parentIds.values(),
      holderIds: this.#holderIds.values(),
      countries: this.#countries.values(),
      registries: this.#registries.values(),
      names: this.#names.values(),
      crosses: this.#crosses.values(),
      removedIn: this.#removedIn.values(),
    };
  }
}

function registryIndex(text: string): number {
  const index = registries.indexOf(text as Registry);
  if (index < 0) throw new DatabaseError(`the database holds a registry that is none: ${text}`);
  return index;
}

/** Holders by database id. The columns contain −1 for an unused id. */
export interface CurrentHolders {
  readonly largestId: number;
  readonly ids: Int32Array;
  /** The index of the same holder key in the wanted state, or −1. */
  readonly wanted: Int32Array;
  readonly names: Int32Array;
  /** −1 when the holder has no handle. */
  readonly handles: Int32Array;
}

/** `find` returns the wanted state's index of a key, or −1. */
export async function readCurrentHolders(
  client: PoolClient,
  texts: TextPool,
  find: (key: string) => number,
): Promise<CurrentHolders> {
  const ids = new GrowingColumn(int32);
  const wanted = new GrowingColumn(int32);
  const names = new GrowingColumn(int32);
  const handles = new GrowingColumn(int32);
  await readCopy(client, "select holder_id, holder_key, name, handle from holder", (row) => {
    ids.push(row.int32(0));
    wanted.push(find(row.text(1)));
    names.push(texts.intern(row.text(2)));
    handles.push(row.isNull(3) ? -1 : texts.intern(row.text(3)));
  });
  const largestId = ids.values().reduce((largest, id) => Math.max(largest, id), 0);
  const byId = (column: GrowingColumn<Int32Array<ArrayBuffer>>) => {
    const values = new Int32Array(largestId + 1).fill(-1);
    ids.values().forEach((id, row) => {
      values[id] = column.at(row);
    });
    return values;
  };
  return { largestId, ids: ids.values(), wanted: byId(wanted), names: byId(names), handles: byId(handles) };
}
