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

/** What a line is, by its first byte; `blank` where it is the line's end. */
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

const nameBytes = slotNames.map((name) => Buffer.from(name));
const table = slotTable();

/** The slot of the name between two positions, in capitals or not; `noSlot` for any other. */
export function slotOf(bytes: Buffer, start: number, end: number): number {
  const length = end - start;
  const middle = bytes[start + (length >> 1)] as number;
  const slot = table[placeOf(length, bytes[start] as number, middle)] as number;
  return slot !== noSlot && isNameOf(slot, bytes, start, length) ? slot : noSlot;
}

/** Length, first and middle letter tell the names apart; the case of a letter is its bit 5. */
function placeOf(length: number, first: number, middle: number): number {
  return ((length & 15) << 10) | ((first & 31) << 5) | (middle & 31);
}

function isNameOf(slot: number, bytes: Buffer, start: number, length: number): boolean {
  const name = nameBytes[slot] as Buffer;
  if (name.length !== length) return false;
  for (let at = 0; at < length; at++) {
    const code = bytes[start + at] as number;
    if ((code >= 0x41 && code <= 0x5a ? code | 0x20 : code) !== name[at]) return false;
  }
  return true;
}

/** One slot to a place; names that share one would be lost, so that is checked. */
function slotTable(): Int8Array {
  const slotAt = new Int8Array(1 << 14).fill(noSlot);
  for (const [slot, name] of nameBytes.entries()) {
    const place = placeOf(name.length, name[0] as number, name[name.length >> 1] as number);
    if (slotAt[place] !== noSlot) throw new Error(`two attribute names at one place: ${slotNames[slot]}`);
    slotAt[place] = slot;
  }
  return slotAt;
}
