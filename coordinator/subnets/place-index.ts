/**
 * One 32-bit word per place says where the place's parent is and how far its range reaches, so that a look-up has
 * both for one cache miss:
 *
 *   bit 31       the stretch from the place on is answered by the table of segments (`hard-stretches.ts`)
 *   bits 16–30   the parent: bit 30 clear, its place within this block of 2^14 places; bit 30 set, an index
 *                into the block's list of parents further ahead (and −1, for none)
 *   bits 0–15    the extent: below 2^15 what the family makes of it, else 2^15 plus an index into the
 *                block's list of ranges that do not fit
 *
 * A block has 2^14 places, so that either list has at most as many entries, and 14 bits always reach.
 */
import { GrowingColumn } from "#core/columns";

export interface LinkLists {
  /** Parents in earlier blocks, all blocks' lists one after the other, and where each block's list starts. */
  readonly farParents: Int32Array;
  readonly farStarts: Int32Array;
  /** Ranges that do not fit: `oddWords` words each, and at which entry each block's list starts. */
  readonly odd: Int32Array;
  readonly oddStarts: Int32Array;
}

const blockBits = 14;
const farParentFlag = 1 << blockBits;
const inBlock = farParentFlag - 1;
/** Extents from here on are indexes into the list of ranges that do not fit. */
export const oddExtent = 0x8000;
const hardFlag = 1 << 31;

export type OddColumn = GrowingColumn<Int32Array<ArrayBuffer>>;

/** What one family knows of its ranges' extents. */
export interface ExtentCoding {
  /** The extent of the range at the place, below `oddExtent`; −1 when it does not fit. */
  extentOf(place: number): number;
  /** Appends what is known of a range that does not fit: always the same number of words. */
  writeOdd(place: number, into: OddColumn): void;
  /** How many words those are. */
  readonly oddWords: number;
}

export interface UnpackedLinks {
  /** The place of each place's parent, which stands before it, or −1. */
  readonly parents: Int32Array;
  /** 1 for places whose stretch is hard. */
  readonly hard: Uint8Array;
  readonly coding: ExtentCoding;
}

export interface PlaceLinks {
  /** One word per place. */
  readonly links: Int32Array;
  readonly lists: LinkLists;
}

export function packLinks(unpacked: UnpackedLinks): PlaceLinks {
  const { parents, coding } = unpacked;
  const links = new Int32Array(parents.length);
  const [farParents, farStarts] = [int32Column(), int32Column()];
  const [odd, oddStarts] = [int32Column(), int32Column()];
  for (let start = 0; start < parents.length; start += 1 << blockBits) {
    farStarts.push(farParents.length);
    oddStarts.push(odd.length / coding.oddWords);
    packBlock({ ...unpacked, links, start, farParents, odd });
  }
  const lists = {
    farParents: farParents.values().slice(),
    farStarts: farStarts.values().slice(),
    odd: odd.values().slice(),
    oddStarts: oddStarts.values().slice(),
  };
  return { links, lists };
}

interface BlockWork extends UnpackedLinks {
  readonly links: Int32Array;
  readonly start: number;
  readonly farParents: GrowingColumn<Int32Array<ArrayBuffer>>;
  readonly odd: OddColumn;
}

function packBlock({ links, parents, hard, coding, start, farParents, odd }: BlockWork): void {
  const farIndexes = new Map<number, number>();
  const end = Math.min(parents.length, start + (1 << blockBits));
  let oddCount = 0;
  for (let place = start; place < end; place += 1) {
    const parent = parents[place] as number;
    let link = parent & inBlock;
    if (parent < start) {
      if (!farIndexes.has(parent)) {
        farIndexes.set(parent, farIndexes.size);
        farParents.push(parent);
      }
      link = farParentFlag | (farIndexes.get(parent) as number);
    }
    const fitting = coding.extentOf(place);
    const extent = fitting >= 0 ? fitting : oddExtent | oddCount++;
    if (fitting < 0) coding.writeOdd(place, odd);
    links[place] = (hard[place] === 1 ? hardFlag : 0) | (link << 16) | extent;
  }
}

/** The parent's place, or −1; `link` is that of the place. */
export function parentAt(lists: LinkLists, place: number, link: number): number {
  const parent = (link >>> 16) & (farParentFlag | inBlock);
  if (parent < farParentFlag) return (place & ~inBlock) | parent;
  return lists.farParents[(lists.farStarts[place >>> blockBits] as number) + (parent & inBlock)] as number;
}

/** Which entry of `odd` tells of the place; its extent is `oddExtent` or above. */
export function oddEntry(lists: LinkLists, place: number, extent: number): number {
  return (lists.oddStarts[place >>> blockBits] as number) + (extent & inBlock);
}

export const extentIn = (link: number): number => link & 0xffff;

/** True when the table of segments has the answer. */
export const isHard = (link: number): boolean => link < 0;

export function listBytes({ farParents, farStarts, odd, oddStarts }: LinkLists): number {
  return [farParents, farStarts, odd, oddStarts].reduce((sum, { byteLength }) => sum + byteLength, 0);
}

const int32Column = () => new GrowingColumn((length: number) => new Int32Array(length));
