/**
 * What a site states of the uses of its pages, beside what may be fetched: each statement as it was found, and the uses that
 * they come to together. Where statements differ, the strictest holds, as with robots directives.
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

/** Where it was found. */
const preferencePlaces = ["robots.txt", "header", "meta", "link", "tdmrep.json"] as const;

/** licensed: only by agreement with the site, which a license or a policy names. */
export const preferenceAnswers = ["allowed", "licensed", "denied"] as const;

/** What a page may be used for, as far as the standards have words for it. */
export const contentUses = ["search", "ai-input", "ai-train", "text-and-data-mining"] as const;

export type ContentUse = (typeof contentUses)[number];
export type PreferenceAnswer = (typeof preferenceAnswers)[number];

/** Further ones are left out, the strictest last of all. */
export const maxPreferences = 24;

export const statedPreference = z.object({
  standard: z.enum(preferenceStandards),
  place: z.enum(preferencePlaces),
  /** The uses that it speaks of; none: of a kind that we do not know. */
  uses: listOf(z.enum(contentUses), contentUses.length),
  answer: z.enum(preferenceAnswers),
  /** As it was written, cut to what is legible: `search=yes, ai-train=no`. */
  text: z.string().max(300),
});

export type StatedPreference = z.infer<typeof statedPreference>;

/** What holds for each use; one that nobody spoke of is absent. */
export type UseAnswers = Readonly<Partial<Record<ContentUse, PreferenceAnswer>>>;

/** The strictest answer for each use. */
export function useAnswers(stated: readonly StatedPreference[]): UseAnswers {
  const answers: Partial<Record<ContentUse, PreferenceAnswer>> = {};
  for (const { uses, answer } of stated)
    for (const use of uses) answers[use] = stricter(answers[use] ?? "allowed", answer);
  return answers;
}

const stricter = (one: PreferenceAnswer, other: PreferenceAnswer): PreferenceAnswer =>
  preferenceAnswers.indexOf(other) > preferenceAnswers.indexOf(one) ? other : one;

/** Whether a page may be indexed and shown: `licensed` is no permission. */
export function maySearch(stated: readonly StatedPreference[]): boolean {
  return (useAnswers(stated).search ?? "allowed") === "allowed";
}
