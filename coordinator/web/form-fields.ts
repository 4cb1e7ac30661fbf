/** Fields and faults that the actions of several rooms share. */
import { z } from "zod";
import { crawlerName } from "#protocol/invitation";

export const pagesPerDay = z.int().min(0).max(1_000_000_000);

export const bytesPerDay = z.int().min(0).max(1e15);

/** Of an action that says all by its address. */
export const nothingBody = z.strictObject({}).meta({ id: "Nothing" });

/** Before something takes work away, a page has people type `meant` (confirmForm); a program's request is enough. */
export function typedConfirmation(meant: string) {
  return z.string().max(100).optional().describe(`${meant}; left out: the request is enough.`);
}

/** A name that can be no crawler's reaches no query. */
export function isName(text: string): boolean {
  return crawlerName.safeParse(text).success;
}
