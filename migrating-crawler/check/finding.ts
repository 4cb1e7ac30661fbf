/** What a look at one thing of the machine or its network found. */

export interface Finding {
  /** What was looked at: `clock`, say. */
  readonly subject: string;
  /** ok: as it should be. note: it works, and this is worth knowing. mend: the crawler cannot work well so. */
  readonly state: "ok" | "note" | "mend";
  /** What is the case, and what to do about it, in one or two sentences. */
  readonly words: string;
}

export const ok = (subject: string, words: string): Finding => ({ subject, state: "ok", words });
export const note = (subject: string, words: string): Finding => ({ subject, state: "note", words });
export const mend = (subject: string, words: string): Finding => ({ subject, state: "mend", words });
