/** Fields and faults that the actions of several rooms share. */
import { z } from "zod";
import { crawlerName } from "#protocol/invitation";
import type { ActionFault } from "./actions.ts";

export const pagesPerDay = z.int().min(0).max(1_000_000_000);

export const bytesPerDay = z.int().min(0).max(1e15);

/** Of an action that says all by its address. */
export const nothingBody = z.strictObject({}).meta({ id: "Nothing" });

/** Before something takes work away, a page has people type `meant` (confirmForm); a program's request is enough. */
export function typedConfirmation(meant: string) {
  return z.string().max(100).optional().describe(`${meant}; left out: the request is enough.`);
}

/** Null: what was typed is what is meant, or nothing had to be. */
export function unconfirmed(
  { confirmation }: { readonly confirmation?: string | undefined },
  meant: { readonly text: string; readonly words: string },
): ActionFault | null {
  if (confirmation === undefined || confirmation === meant.text) return null;
  const words = `Nothing was done: to confirm, type ${meant.words}, ${meant.text.slice(0, 63)}.`;
  return { type: "fault", status: 422, title: "Not confirmed", words };
}

/** A name that can be no crawler's reaches no query. */
export function isName(text: string): boolean {
  return crawlerName.safeParse(text).success;
}
