/** What sites state of the uses of their pages, in words for people. */
import { type StatedPreference, type UseAnswers, useAnswers } from "#protocol/preferences";
import { printable } from "../output.ts";

const names: Readonly<Record<StatedPreference["standard"], string>> = {
  "content-signal": "Content-Signal",
  "content-usage": "Content-Usage",
  tdm: "TDM",
  rsl: "RSL license",
  "robots-words": "robots word",
};

/** `Content-Signal: search=no (search denied)`. */
export function statementWords({ standard, uses, answer, text }: Omit<StatedPreference, "place">): string {
  const what = uses.length === 0 ? otherWords(answer) : `${uses.join(", ")} ${answer}`;
  return `${names[standard]}: ${printable(text)} (${what})`;
}

/** Of a statement whose uses are not among those that we have words for. */
const otherWords = (answer: StatedPreference["answer"]) =>
  ({
    allowed: "says nothing that we know",
    licensed: "licensed; the license says for what",
    denied: "denies another use",
  })[answer];

/** Named lines: each statement with its place, and what they come to; none where nothing is stated. */
export function statedFacts(stated: readonly StatedPreference[]): (readonly [name: string, fact: string])[] {
  if (stated.length === 0) return [];
  return [
    ...stated.map(
      ({ place, ...one }) => ["states", `${statementWords(one)}  in ${placeWords(place)}`] as const,
    ),
    ["for us", usesWords(useAnswers(stated))],
  ];
}

function placeWords(place: StatedPreference["place"]): string {
  const words = { header: "the header", meta: "the page", link: "a link of the page" };
  return place in words ? words[place as keyof typeof words] : place;
}

/** What it comes to for us, who search: `search: denied, so it is not indexed; ai-train: denied`. */
export function usesWords(uses: UseAnswers): string {
  const { search, ...others } = uses;
  const consequence =
    search === undefined || search === "allowed"
      ? ""
      : ", so the page is not indexed, and its links are followed";
  const rest = Object.entries(others).map(([use, answer]) => `${use}: ${answer}`);
  return [`search: ${search ?? "not stated, and so allowed"}${consequence}`, ...rest].join("; ");
}
