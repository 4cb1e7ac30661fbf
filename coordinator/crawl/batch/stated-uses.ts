/**
 * A site's statements about the uses of a page (protocol/preferences): stored with the page, obeyed and displayed. A
 * page that must not be searched is stored without its text, whatever its crawler sent.
 */
import { howMany } from "#core/format";
import {
  contentUses,
  maxPreferences,
  maySearch,
  preferenceAnswers,
  type StatedPreference,
  type UseAnswers,
} from "#protocol/preferences";
import { clean } from "../../database/transaction.ts";
import type { ToldOf } from "../../web/api-operation.ts";
import type { ArrivedResult } from "./accepted-result.ts";
import type { statedCountSchema } from "./stated-uses-api.ts";

export interface StatedUses {
  readonly answers: UseAnswers;
  readonly statements: readonly StatedPreference[];
  /** Times of the first and the last fetch that found this list. */
  readonly since: string;
  readonly confirmedAt: string;
}

const mostCharacters = 2000;

/** Strictest first, without duplicates, so that equal statements make equal lists. */
export function listOfStatements(stated: readonly StatedPreference[]): readonly StatedPreference[] {
  const byText = new Map(stated.map((one) => [JSON.stringify(inOrder(one)), inOrder(one)]));
  let left = mostCharacters;
  return [...byText]
    .sort(([a, one], [b, other]) => strictness(other) - strictness(one) || (a < b ? -1 : 1))
    .slice(0, maxPreferences)
    .map(([, one]) => {
      const text = one.text.slice(0, left);
      left -= text.length;
      return { ...one, text };
    });
}

/** Among equally strict statements those about search come first, since search is the use that is obeyed here. */
const strictness = ({ answer, uses }: StatedPreference) =>
  2 * preferenceAnswers.indexOf(answer) + Number(uses.includes("search"));

function inOrder({ standard, place, uses, answer, text }: StatedPreference): StatedPreference {
  const ordered = contentUses.filter((use) => uses.includes(use));
  // Removes control characters, which would break terminals and lists.
  const legible = clean(text).replace(/\p{Cc}+/gu, " ");
  return { standard, place, uses: ordered, answer, text: legible };
}

/** Statements within the page, which an unchanged response does not repeat. */
const inBody: readonly StatedPreference["place"][] = ["meta", "link"];

/** Statements that apply to an unchanged page: the new ones around it, and the former ones in it. */
export function statedOfUnchanged(
  now: readonly StatedPreference[],
  before: readonly StatedPreference[],
): readonly StatedPreference[] {
  return [...now, ...before.filter(({ place }) => inBody.includes(place))];
}

const noSimhash = "0".repeat(16);

/** Removes the page's words where its site does not want it searched. */
export function withoutUnwantedText<Arrived extends ArrivedResult>(arrived: Arrived): Arrived {
  const { result } = arrived;
  const { page, preferences = [] } = result;
  if (page === null || maySearch(preferences)) return arrived;
  const { structured: _, textKnown: __, nearDuplicateOf: ___, unquoted: ____, ...facts } = page;
  const silent = {
    ...facts,
    title: "",
    description: "",
    headings: [],
    text: "",
    simhash: noSimhash,
    links: page.links.map((link) => ({ ...link, anchor: "" })),
    robots: { ...page.robots, noindex: true },
  };
  const links = arrived.links.map((link) => ({ ...link, anchor: "" }));
  return { ...arrived, links, result: { ...result, page: silent } };
}

const standardWords: Readonly<Record<StatedPreference["standard"], string>> = {
  "content-signal": "Content-Signal",
  "content-usage": "Content-Usage",
  tdm: "TDM reservation",
  rsl: "RSL",
  "robots-words": "robots directive of no standard",
};

const placeWords: Readonly<Record<StatedPreference["place"], string>> = {
  "robots.txt": "in robots.txt",
  header: "in a header",
  meta: "in a meta element",
  link: "by a link",
  "tdmrep.json": "in tdmrep.json",
};

/** `Content-Signal in robots.txt: search=yes, ai-train=no`. */
export function statementWords({ standard, place, text }: StatedPreference): string {
  return `${standardWords[standard]} ${placeWords[place]}: ${text}`;
}

/** Each text once with its meaning: `Content-Signal in robots.txt: search=no (search denied)`. */
export function statementLines(statements: readonly StatedPreference[]): string[] {
  const parts = new Map<string, string[]>();
  for (const one of statements) {
    const words = one.uses.map((use) => `${use} ${one.answer}`);
    const line = statementWords(one);
    parts.set(line, [...(parts.get(line) ?? []), ...words]);
  }
  return [...parts].map(([line, words]) => (words.length === 0 ? line : `${line} (${words.join(", ")})`));
}

/** `search: allowed; ai-train: denied`. Unmentioned uses are omitted. */
export function answersWords(answers: UseAnswers): string {
  const said = contentUses.flatMap((use) => (answers[use] === undefined ? [] : [`${use}: ${answers[use]}`]));
  return said.length === 0 ? "of no use that is known" : said.join("; ");
}

/** `search=allowed; ai-train=denied`, as filters and exports write it. */
export function answersText(answers: UseAnswers): string {
  return answerTexts(answers).join("; ");
}

export function answerTexts(answers: UseAnswers): string[] {
  return contentUses.flatMap((use) => (answers[use] === undefined ? [] : [`${use}=${answers[use]}`]));
}

/** "ai-train: denied on 40 pages, search: allowed on 38". Empty if no page states anything. */
export function countWords(counts: readonly StatedCount[]): string {
  return counts.map(({ use, answer, pages }) => `${use}: ${answer} on ${howMany(pages, "page")}`).join(", ");
}

/** Counts of answers per use, most frequent first. */
export type StatedCount = ToldOf<typeof statedCountSchema>;

export function countAnswers(
  sets: readonly { readonly answers: UseAnswers; readonly pages: number }[],
): StatedCount[] {
  const counts = new Map<string, StatedCount>();
  for (const { answers, pages } of sets)
    for (const use of contentUses) {
      const answer = answers[use];
      if (answer === undefined) continue;
      const key = `${use}=${answer}`;
      counts.set(key, { use, answer, pages: (counts.get(key)?.pages ?? 0) + pages });
    }
  return [...counts.values()].sort(
    (a, b) => b.pages - a.pages || contentUses.indexOf(a.use) - contentUses.indexOf(b.use),
  );
}

/** Explains why no part of the page is shown. */
export function notSearchedWords(statements: readonly StatedPreference[]): string {
  const against = statements.filter((one) => !maySearch([one])).map(statementWords);
  return `The site states that this page is not to be searched, so nothing of it is shown (${against.join("; ")}).`;
}
