/** The RPSL attributes that the import looks at, and how a line is told to be one of them. */

/** By name; the number is the attribute's place among an object's values. */
export const slots = {
  inetnum: 0,
  inet6num: 1,
  organisation: 2,
  nethandle: 3,
  v6nethandle: 4,
  orgid: 5,
  netrange: 6,
  netname: 7,
  descr: 8,
  country: 9,
  org: 10,
  source: 11,
  owner: 12,
  ownerid: 13,
  "org-name": 14,
  orgname: 15,
  nettype: 16,
} as const;
export type SlotName = keyof typeof slots;

export const slotNames = Object.keys(slots) as SlotName[];
export const slotCount = slotNames.length;
export const noSlot = -1;

/** Attributes that make an object ours wherever they stand in it; `orgid` only when it comes first. */
export const isClassSlot = Uint8Array.from(slotNames, (name) =>
  /^(inetnum|inet6num|organisation|nethandle|v6nethandle)$/.test(name) ? 1 : 0,
);

/** What a line is, by its first byte. */
export const lineKind = { attribute: 0, blank: 1, comment: 2, continuation: 3, other: 4 } as const;
export const lineKinds = Uint8Array.from({ length: 256 }, (_, code) => {
  const letter = String.fromCharCode(code);
  if ("\r\n".includes(letter)) return lineKind.blank;
  if ("#%".includes(letter)) return lineKind.comment;
  if (" \t+".includes(letter)) return lineKind.continuation;
  return /[A-Za-z0-9*,./_-]/.test(letter) ? lineKind.attribute : lineKind.other;
});

/** Longer ones are no attribute names: the longest in use has 23 bytes. */
export const maxNameBytes = 64;

/**
 * Bytes of a name, capitals as small letters: letters, digits, `*`, `+`, `,`, `-`, `.`, `/`, `_` and spaces, which
 * is what stands before the colon in real files. 0 for every other byte.
 */
export const nameCodes = Uint8Array.from({ length: 256 }, (_, code) =>
  /[A-Za-z0-9*+,./_ -]/.test(String.fromCharCode(code))
    ? String.fromCharCode(code).toLowerCase().charCodeAt(0)
    : 0,
);

/** The running hash of a name's codes: `hash = (hash · 31 + code) mod 2³²`. */
export const hashStep = (hash: number, code: number): number => (Math.imul(hash, 31) + code) | 0;

const tableBits = 10;
const placeOf = (hash: number) => (hash ^ (hash >>> 15)) & ((1 << tableBits) - 1);
const nameBytes = slotNames.map((name) => Buffer.from(name));
const table = slotTable();

/** The slot of the name between two positions, whose hash is given; `noSlot` for any other. */
export function slotOf(hash: number, bytes: Buffer, start: number, end: number): number {
  const slot = table[placeOf(hash)] as number;
  return slot !== noSlot && isNameOf(slot, bytes, start, end) ? slot : noSlot;
}

function isNameOf(slot: number, bytes: Buffer, start: number, end: number): boolean {
  const name = nameBytes[slot] as Buffer;
  if (name.length !== end - start) return false;
  for (let at = 0; at < name.length; at++) {
    if (nameCodes[bytes[start + at] as number] !== name[at]) return false;
  }
  return true;
}

/** One slot to a place; names that share one would be lost, so that is checked. */
function slotTable(): Int8Array {
  const slotAt = new Int8Array(1 << tableBits).fill(noSlot);
  for (const [slot, name] of nameBytes.entries()) {
    const place = placeOf(name.reduce(hashStep, 0));
    if (slotAt[place] !== noSlot) throw new Error(`two attribute names at one place: ${slotNames[slot]}`);
    slotAt[place] = slot;
  }
  return slotAt;
}
