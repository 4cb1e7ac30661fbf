/** Fields and faults that the actions of several rooms share. */
import { z } from "zod";
import { UsageError } from "#core/errors";
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

/** Of such a form: an empty field confirms nothing. */
export function confirmationOf({ confirmation = "" }: Readonly<Record<string, string>>): {
  confirmation: string;
} {
  return { confirmation: confirmation.trim() };
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

/** Of a form: an empty field is none; what is no number stays as it is, to be refused by its name. */
export function numberOrNull(text: string | undefined): number | null | string {
  if (text === undefined || text.trim() === "") return null;
  return /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text;
}

/** Of a form: gigabytes as bytes. */
export function bytesOrNull(gigabytes: string | undefined): number | null | string {
  const given = numberOrNull(gigabytes);
  return typeof given === "number" ? Math.round(given * 1e9) : given;
}

export function noCrawler(name: string): ActionFault {
  return {
    type: "fault",
    status: 404,
    title: "Not known",
    words: `There is no crawler named ${name.slice(0, 63)}.`,
  };
}

/** What the operator can mend is said; anything else is ours. */
export function usageFault(error: unknown, title: string, status: 400 | 409 = 409): ActionFault {
  if (!(error instanceof UsageError)) throw error;
  return { type: "fault", status, title, words: error.message };
}

/** A name that can be no crawler's reaches no query. */
export function isName(text: string): boolean {
  return crawlerName.safeParse(text).success;
}
