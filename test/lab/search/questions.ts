/** Generated queries: words as frequent as in the texts, and words of existing titles. */
import type { Language } from "./made-pages.ts";
import { byShare } from "./vocabulary.ts";

/** The number of each kind among 100 queries; `title`: words of an existing title. */
const asked = {
  "one word": { share: 25, words: (asking) => drawn(asking, 1) },
  "two words": { share: 22, words: (asking) => drawn(asking, 2) },
  "three words": { share: 13, words: (asking) => drawn(asking, 3) },
  "four words": { share: 8, words: (asking) => drawn(asking, 4) },
  "words of a title": { share: 12, words: (_, title) => title.slice(0, 3).join(" ") },
  phrase: { share: 6, words: (_, [first, second]) => `"${first} ${second}"` },
  "with a filter": { share: 14, words: (asking) => drawn(asking, 1 + Math.floor(2 * asking.random())) },
} as const satisfies Record<
  string,
  { readonly share: number; readonly words: (asking: Asking, title: readonly string[]) => string }
>;
export type Kind = keyof typeof asked;
export const kinds = Object.keys(asked) as readonly Kind[];

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

export function nextQuestion(asking: Asking): Question {
  const { kind } = byShare(
    kinds.map((kind) => ({ kind, share: asked[kind].share })),
    asking.random() * 100,
  );
  const words = asked[kind].words(asking, one(asking, asking.titles).split(" "));
  return { kind, words, filters: kind === "with a filter" ? filterOf(asking) : {} };
}

function drawn({ languages, random }: Asking, count: number): string {
  const { vocabulary } = byShare(languages, random());
  return Array.from({ length: count }, () => vocabulary.words[vocabulary.draw()]).join(" ");
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
