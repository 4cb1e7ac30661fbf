/** What people ask, made up: words drawn as often as the texts have them, and words of titles that there are. */
import type { Pool } from "pg";
import type { Language } from "./made-pages.ts";
import { byShare } from "./vocabulary.ts";

export const kinds = [
  "one word",
  "two words",
  "three words",
  "four words",
  "words of a title",
  "phrase",
  "with a filter",
] as const;
export type Kind = (typeof kinds)[number];

/** Out of 100 questions. */
const shares: Readonly<Record<Kind, number>> = {
  "one word": 25,
  "two words": 22,
  "three words": 13,
  "four words": 8,
  "words of a title": 12,
  phrase: 6,
  "with a filter": 14,
};

export interface Question {
  readonly kind: Kind;
  readonly words: string;
  readonly filters: Readonly<Record<string, string>>;
}

export interface Asking {
  readonly languages: readonly Language[];
  readonly titles: readonly string[];
  readonly random: () => number;
}

export async function someTitles(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ title: string }>(
    "select title from page order by host_hash, url_hash limit 2000",
  );
  return rows.map((row) => row.title);
}

export function nextQuestion(asking: Asking): Question {
  const kind = kindOf(asking.random() * 100);
  return { kind, words: wordsOf(kind, asking), filters: kind === "with a filter" ? filterOf(asking) : {} };
}

function kindOf(place: number): Kind {
  return byShare(
    kinds.map((kind) => ({ kind, share: shares[kind] })),
    place,
  ).kind;
}

function wordsOf(kind: Kind, asking: Asking): string {
  const title = () => one(asking, asking.titles).split(" ");
  const [first = "", second = "", third = ""] = title();
  switch (kind) {
    case "one word":
      return drawn(asking, 1);
    case "two words":
      return drawn(asking, 2);
    case "three words":
      return drawn(asking, 3);
    case "four words":
      return drawn(asking, 4);
    case "words of a title":
      return [first, second, third].join(" ");
    case "phrase":
      return `"${first} ${second}"`;
    case "with a filter":
      return drawn(asking, 1 + Math.floor(2 * asking.random()));
  }
}

function drawn(asking: Asking, count: number): string {
  const { vocabulary } = languageOf(asking);
  return Array.from({ length: count }, () => vocabulary.words[vocabulary.draw()]).join(" ");
}

function languageOf({ languages, random }: Asking): Language {
  return byShare(languages, random());
}

function filterOf(asking: Asking): Record<string, string> {
  return one(asking, [
    { language: "en" },
    { country: "DE" },
    { crawler: "crawler-2" },
    { from: "2026-01-01" },
    { host: "www.h5.en.example" },
    { host: "en.example" },
    { language: "de", to: "2025-12-31" },
  ] as Record<string, string>[]);
}

function one<T>({ random }: Asking, some: readonly T[]): T {
  return some[Math.floor(random() * some.length)]!;
}
