/**
 * How far a reader of the change feed is: in each slice of the web, the number of the last change that it read. Written as
 * `0:4712,1:1099511627999`, and where there is one slice as its plain number.
 *
 * A slice that a cursor does not name is read from its beginning, so that a cursor stays good when slices are added.
 */
import { numbersPerSlice, sliceOfNumber } from "#db/slice-numbers";

export type ChangeCursor = Readonly<Record<number, number>>;

/** Of as many slices as an address has room for. */
const longestCursor = 4000;

const slicePattern = /^(\d{1,4}):(\d{1,16})$/;

/** As typed; null: it is none. A plain number is of the slice that gave it. */
export function parseCursor(text: string): ChangeCursor | number | null {
  if (/^\d{1,16}$/.test(text)) return Number.isSafeInteger(Number(text)) ? Number(text) : null;
  if (text.length > longestCursor) return null;
  const cursor: Record<number, number> = {};
  for (const part of text.split(",")) {
    const [, slice, number] = slicePattern.exec(part) ?? [];
    if (slice === undefined || !Number.isSafeInteger(Number(number)) || Number(slice) in cursor) return null;
    cursor[Number(slice)] = Number(number);
  }
  return cursor;
}

export const cursorOf = (since: number | ChangeCursor): ChangeCursor =>
  typeof since === "number" ? { [sliceOfNumber(String(since))]: since } : since;

/** As JSON has it: a number where there is one slice. */
export function cursorValue(cursor: ChangeCursor): number | string {
  const slices = Object.entries(cursor);
  if (slices.length === 1 && slices[0]![0] === "0") return slices[0]![1];
  return slices.map(([slice, number]) => `${slice}:${number}`).join(",");
}

/** Before the first change that a slice may have. */
export const firstNumberOf = (slice: number): number => Number(BigInt(slice) * numbersPerSlice);
