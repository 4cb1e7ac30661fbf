/**
 * Questions about real pages with judgements by rules that look at the pages and at no engine's answers.
 *
 * Known items: the one relevant page is that which the question was made of.
 *   title     the first words of its title, without the name of the site
 *   words     the three words of its text with the highest tf · ln(N / df), each at least three times in the text
 *   heading   a heading within its text that no other page has
 *   anchor    the text of a link to it from another host
 * Topical: a topic under which a publisher files one of the pages (keywords, tags, section). Each page gets a grade:
 *   3  its publisher files it under the topic, and its title, a heading or its description names the topic
 *   2  its publisher does and its text names the topic, or its title names it
 *   1  a heading or its description, or at least two paragraphs, name it
 * A text names a topic that has all its words, in any order; words are the same whose beginnings are, so that no stemmer decides.
 */
import { createHash } from "node:crypto";
import type { Grades } from "./measures.ts";
import type { PageSet, Question, SetPage } from "./page-set.ts";

/** How many of each kind; fewer where the pages do not yield them. */
const wanted = { title: 80, words: 80, heading: 60, anchor: 10, topical: 90 };

/** Pages with less text are notices and walls. */
const fewestWords = 50;
/** Titles and headings: shorter ones say too little, of longer ones nobody types more. */
const [fewest, most] = [3, 8];

interface ReadPage extends SetPage {
  readonly title: Words;
  /** Description and headings. */
  readonly head: readonly Words[];
  readonly paragraphs: readonly Words[];
  readonly counts: ReadonlyMap<string, number>;
}

type Words = ReadonlySet<string>;

export function realSet(pages: readonly SetPage[]): PageSet {
  const read = pages.map(readPage);
  const long = read.filter(({ counts }) => sum([...counts.values()]) >= fewestWords);
  const formsOf = formsIn(read);
  const all = [
    ...long.flatMap(({ url, extract }) => knownItem("title", url, wordsOf(withoutSite(extract.title)))),
    ...long.flatMap((page) => knownItem("words", page.url, rareWords(page, read))),
    ...long.flatMap(({ url, extract }) => {
      const lines = new Set(extract.text.split("\n"));
      const own = extract.headings.filter(({ level, text: heading }) => level > 1 && lines.has(heading));
      const only = own.filter((one) => pages.filter((page) => hasHeading(page, one.text)).length === 1);
      return only.flatMap((heading) => knownItem("heading", url, wordsOf(heading.text))).slice(0, 1);
    }),
    ...read.flatMap(({ url, anchors }) => anchors.flatMap((one) => knownItem("anchor", url, wordsOf(one)))),
    ...[...new Set(read.flatMap(({ topics }) => topics))].flatMap((topic) => {
      const words = wordsOf(topic);
      const isWord = words.some((word) => word.length >= (isIdeographic(word) ? 2 : 4));
      return isWord && words.length <= 4 ? topicalQuestion(topic, words.map(formsOf), read) : [];
    }),
  ];
  const times = (text: string) => all.filter((question) => question.text === text).length;
  const drawn = all
    .filter(({ text }) => times(text) === 1)
    .sort((a, b) => (digestOf(a.text) < digestOf(b.text) ? -1 : 1));
  const questions = Object.entries(wanted).flatMap(([kind, count]) =>
    drawn.filter((question) => question.kind === kind).slice(0, count),
  );
  return { pages, questions };
}

function readPage(page: SetPage): ReadPage {
  const { title, description, headings, text } = page.extract;
  const counts = new Map<string, number>();
  const paragraphs = text.split("\n").map(wordsOf);
  for (const word of paragraphs.flat()) counts.set(word, (counts.get(word) ?? 0) + 1);
  const [titleWords, ...head] = [title, description, ...headings.map(({ text }) => text)]
    .map(wordsOf)
    .map(setOf);
  return { ...page, title: titleWords!, head, paragraphs: paragraphs.map(setOf), counts };
}

const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");
const setOf = (words: readonly string[]): Words => new Set(words);
const sum = (numbers: readonly number[]) => numbers.reduce((one, other) => one + other, 0);

/** The last bit of the text's digest says which half it is in, so that nobody chose. */
function questionOf(kind: string, words: readonly string[], grades: Grades): Question {
  const text = words.join(" ");
  const isEven = Number.parseInt(digestOf(text).at(-1)!, 16) % 2 === 0;
  return { kind, text, grades, half: isEven ? "tuning" : "held out" };
}

function knownItem(kind: string, url: string, words: readonly string[]): readonly Question[] {
  if (words.length < fewest) return [];
  return [questionOf(kind, words.slice(0, most), new Map([[url, 1]]))];
}

function withoutSite(title: string): string {
  const parts = title.split(/\s+[|·•»:–—-]{1,2}\s+/);
  return parts.reduce((longest, part) => (part.length > longest.length ? part : longest), "");
}

const hasHeading = ({ extract }: SetPage, text: string) =>
  extract.headings.some((heading) => heading.text.toLowerCase() === text.toLowerCase());

function rareWords({ counts }: ReadPage, pages: readonly ReadPage[]): readonly string[] {
  const weightOf = (word: string, count: number) =>
    count * Math.log(pages.length / pages.filter((page) => page.counts.has(word)).length);
  return [...counts]
    .filter(
      ([word, count]) => count >= 3 && word.length >= (isIdeographic(word) ? 2 : 4) && /^\p{L}+$/u.test(word),
    )
    .map(([word, count]) => ({ word, weight: weightOf(word, count) }))
    .sort((a, b) => b.weight - a.weight || (a.word < b.word ? -1 : 1))
    .slice(0, 3)
    .map(({ word }) => word);
}

/** Asked is what a publisher means by a page that names it, and what some other pages are about, but not all. */
const [fewestRelevant, mostRelevant] = [2, 25];

function topicalQuestion(
  topic: string,
  words: readonly Words[],
  pages: readonly ReadPage[],
): readonly Question[] {
  const graded = pages.map((page) => [page.url, gradeOf(topic, words, page)] as const);
  const grades = new Map(graded.filter(([, grade]) => grade > 0));
  const isAsked =
    grades.size >= fewestRelevant && grades.size <= mostRelevant && [...grades.values()].includes(3);
  return isAsked ? [questionOf("topical", wordsOf(topic), grades)] : [];
}

function gradeOf(
  topic: string,
  words: readonly Words[],
  { topics, title, head, paragraphs }: ReadPage,
): number {
  const names = (text: Words) => words.every((forms) => [...forms].some((form) => text.has(form)));
  const isFiled = topics.includes(topic);
  const [inTitle, inHead] = [names(title), head.some(names)];
  if (isFiled && (inTitle || inHead)) return 3;
  const naming = paragraphs.filter(names).length;
  if (inTitle || (isFiled && naming > 0)) return 2;
  return inHead || naming > 1 ? 1 : 0;
}

/** Returns all forms of a word that the pages have. */
function formsIn(pages: readonly ReadPage[]): (word: string) => Words {
  const vocabulary = new Set(
    pages.flatMap(({ title, head, counts }) => [
      ...title,
      ...head.flatMap((one) => [...one]),
      ...counts.keys(),
    ]),
  );
  const byStart = new Map<string, string[]>();
  for (const word of vocabulary) byStart.set(startOf(word), [...(byStart.get(startOf(word)) ?? []), word]);
  return (word) => new Set([word, ...(byStart.get(startOf(word)) ?? []).filter((one) => isSame(one, word))]);
}

const startOf = (word: string) => word.slice(0, 4);

/** Forms of one word differ in their last letters: in a third of the longer one at most, three letters at most. */
function isSame(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  const shared = long.length - Math.min(3, Math.floor(long.length / 3));
  return shared >= 4 && short.length >= shared && short.slice(0, shared) === long.slice(0, shared);
}

const segmenter = new Intl.Segmenter("und", { granularity: "word" });

/** By Unicode's rules and ICU's dictionaries, which know words of Chinese, Japanese and Thai. */
function wordsOf(text: string): readonly string[] {
  const composed = text.normalize("NFC").toLowerCase();
  return [...segmenter.segment(composed)]
    .filter(({ isWordLike }) => isWordLike)
    .map(({ segment }) => segment);
}

const isIdeographic = (word: string) =>
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}]/u.test(word);
