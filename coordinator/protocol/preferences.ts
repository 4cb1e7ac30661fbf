/**
 * A site's statements on the uses of its pages, apart from what may be fetched: each statement as it was found, and the
 * combined result. Where statements differ, the strictest applies, as with robots directives.
 */
import { z } from "zod";
import { listOf } from "./fields.ts";

/**
 * content-signal  `Content-Signal` (contentsignals.org)
 * content-usage   `Content-Usage` (draft-ietf-aipref-attach, vocabulary of draft-ietf-aipref-vocab)
 * tdm             TDM Reservation Protocol (W3C community group)
 * rsl             Really Simple Licensing 1.0
 * robots-words    words such as `noai` among robots directives, in no standard
 */
const preferenceStandards = ["content-signal", "content-usage", "tdm", "rsl", "robots-words"] as const;

const preferencePlaces = ["robots.txt", "header", "meta", "link", "tdmrep.json"] as const;

/** `licensed` means only by agreement with the site, which names a license or policy. */
export const preferenceAnswers = ["allowed", "licensed", "denied"] as const;

/** The uses of a page for which the standards have words. */
export const contentUses = ["search", "ai-input", "ai-train", "text-and-data-mining"] as const;

export type ContentUse = (typeof contentUses)[number];
export type PreferenceAnswer = (typeof preferenceAnswers)[number];

/** Maximum number of statements. Of a longer list, the strictest are kept. */
export const maxPreferences = 24;

export const statedPreference = z.object({
  standard: z.enum(preferenceStandards),
  place: z.enum(preferencePlaces),
  /** The uses that the statement mentions; empty for a statement of an unknown kind. */
  uses: listOf(z.enum(contentUses), contentUses.length),
  answer: z.enum(preferenceAnswers),
  /** The original text, cut to a legible length: `search=yes, ai-train=no`. */
  text: z.string().max(300),
});

export type StatedPreference = z.infer<typeof statedPreference>;

/** The answer for each use; absent for a use that no statement mentions. */
export type UseAnswers = Readonly<Partial<Record<ContentUse, PreferenceAnswer>>>;

export function useAnswers(stated: readonly StatedPreference[]): UseAnswers {
  const answers: Partial<Record<ContentUse, PreferenceAnswer>> = {};
  for (const { uses, answer } of stated)
    for (const use of uses) answers[use] = stricter(answers[use] ?? "allowed", answer);
  return answers;
}

const stricter = (one: PreferenceAnswer, other: PreferenceAnswer): PreferenceAnswer =>
  preferenceAnswers.indexOf(other) > preferenceAnswers.indexOf(one) ? other : one;

/** Whether a page may be indexed and shown. `licensed` does not count as permission. */
export function maySearch(stated: readonly StatedPreference[]): boolean {
  return (useAnswers(stated).search ?? "allowed") === "allowed";
}
