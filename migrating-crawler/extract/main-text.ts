/**
 * Finds a page's own text, without navigation, footers, notices, readers' comments and link lists. Explicit statements come
 * first: microdata that name the article's text, and furniture marked by element, role and class. Then it looks for the
 * element that contains the text, as reader views do. If no element contains enough, it chooses blocks one by one by the link
 * density and length of each block and its neighbours (Kohlschütter, Fankhauser and Nejdl 2010, "Boilerplate detection using
 * shallow text features", the tree on number of words).
 *
 * The rest stays out of the index entirely, because it repeats on every page of a site, fills the vectors and hides
 * near-duplicates. A page with hardly anything else (a link list, a form) keeps all its text unless it calls itself an
 * article.
 */
import { type Containers, mark } from "./html-tags.ts";
import type { PictureText, ReadPage } from "./read-page.ts";
import type { TextBlock } from "./text-blocks.ts";

/** A choice with fewer words is not accepted as the main text, because the rules are not made for short texts. */
const minMainWords = 40;

/** If the page calls itself an article, its text may be this short, which still excludes captions and notices. */
const minArticleWords = 12;

/** A page is a link list if a smaller share of its words looks like text. */
const minMainShare = 0.1;

interface Measured {
  readonly block: TextBlock;
  readonly words: number;
  readonly linkDensity: number;
}

/** Returns the main blocks in their order, including headings. `isArticle` means that the page calls itself an article. */
export function mainBlocks(
  blocks: readonly TextBlock[],
  containers: Containers,
  isArticle: () => boolean,
): readonly TextBlock[] {
  const measured = blocks.filter((block) => (block.marks & mark.hidden) === 0).map(measure);
  const named = without(measured, mark.furniture);
  const unnamed = plainWords(named) < minArticleWords ? measured : named;
  const candidates = candidatesOf(unnamed);
  const region = kept(
    mainRegion(candidates, containers),
    ({ linkDensity }) => linkDensity <= maxRegionDensity,
  );
  const prose = chosen(candidates);
  const isText = wordsOf(region) >= Math.max(minRegionWords, minRegionShare * wordsOf(prose));
  const choices = [...bodyOf(candidates), ...(isText ? [region] : []), prose];
  const fewest = Math.max(minMainWords, minMainShare * wordsOf(candidates));
  const taken =
    choices.find((choice) => wordsOf(choice) >= fewest) ??
    (isArticle() ? choices.find((choice) => wordsOf(choice) >= minArticleWords) : undefined) ??
    [candidates, unnamed].find((choice) => wordsOf(choice) >= minMainWords) ??
    measured;
  return taken.length > 0 ? taken.map(({ block }) => block) : blocks;
}

/** Selects pictures beside the main text, or in elements that contain mostly main text. */
export function mainPictures(
  { blocks, alts, containers: { parents } }: Pick<ReadPage, "blocks" | "alts" | "containers">,
  main: readonly TextBlock[],
): readonly PictureText[] {
  if (alts.length === 0) return alts;
  const [words, own] = [new Float64Array(parents.length), new Float64Array(parents.length)];
  for (const block of blocks) if ((block.marks & mark.hidden) === 0) words[block.container]! += block.words;
  for (const block of main) own[block.container]! += block.words;
  addUp(words, parents);
  addUp(own, parents);
  return alts.filter(({ container }) => {
    let at = container;
    while (at > 0 && words[at] === 0) at = parents[at]!;
    return 2 * own[at]! >= words[at]!;
  });
}

function addUp(sums: Float64Array, parents: readonly number[]): void {
  for (let at = sums.length - 1; at > 0; at--) sums[parents[at]!]! += sums[at]!;
}

function plainWords(measured: readonly Measured[]): number {
  return measured.reduce((sum, { block }) => sum + block.words - block.linkWords, 0);
}

function without(measured: readonly Measured[], marks: number): readonly Measured[] {
  return measured.filter(({ block }) => (block.marks & marks) === 0);
}

/** Drops what class names call furniture, unless that contains nearly all prose, since the names may be wrong. */
function candidatesOf(unnamed: readonly Measured[]): readonly Measured[] {
  const [own, unlikely] = [without(unnamed, mark.comments), without(unnamed, mark.likelyFurniture)];
  const some = proseWords(unlikely);
  // Comments are often longer than the article. A page of nothing but comments is a thread.
  const told = some === 0 && proseWords(own) < minMainWords ? unnamed : own;
  return 2 * some < proseWords(told) ? told : unlikely;
}

/** A longer heading is a paragraph in large type. */
const maxHeadingWords = 40;

export function isHeading({ headingLevel, words }: TextBlock): boolean {
  return headingLevel > 0 && words <= maxHeadingWords;
}

/** Finds the article's text by microdata, with the lead between headline and text. Returns nothing if the text is short. */
function bodyOf(candidates: readonly Measured[]): readonly Measured[][] {
  const isBody = ({ block }: Measured) => (block.marks & mark.articleBody) !== 0;
  const first = candidates.findIndex(isBody);
  if (first < 0 || wordsOf(candidates.filter(isBody)) < minMainWords) return [];
  const headline = candidates.findLastIndex(({ block }, at) => at < first && block.headingLevel === 1);
  const lead = new Set(headline < 0 ? [] : candidates.slice(headline, first).filter(isProse));
  const isKept = (one: Measured) => lead.has(one) || (isBody(one) && one.linkDensity <= maxRegionDensity);
  return [kept(candidates, isKept)];
}

function measure(block: TextBlock): Measured {
  const linkDensity = block.linkWords / Math.max(1, block.words);
  return { block, words: block.words, linkDensity };
}

const wordsOf = (measured: readonly Measured[]) => measured.reduce((sum, { words }) => sum + words, 0);

/** Prose is long and has few links. */
const isProse = ({ words, linkDensity }: Measured) => words > 16 && linkDensity <= 1 / 3;

const proseWords = (measured: readonly Measured[]) => wordsOf(measured.filter(isProse));

function chosen(candidates: readonly Measured[]): Measured[] {
  return kept(candidates, (now, before, after) => isMain(now, before ?? none, after ?? none));
}

/** Keeps the selected blocks with their headings. Headings do not count as neighbours. */
function kept(
  candidates: readonly Measured[],
  isKept: (now: Measured, before: Measured | undefined, after: Measured | undefined) => boolean,
): Measured[] {
  const isTaken = new Uint8Array(candidates.length);
  let [before, now, nowAt]: [Measured | undefined, Measured | undefined, number] = [undefined, undefined, -1];
  for (let at = 0; at <= candidates.length; at++) {
    const after = candidates[at];
    if (after !== undefined && isHeading(after.block)) continue;
    if (now !== undefined && isKept(now, before, after)) isTaken[nowAt] = 1;
    [before, now, nowAt] = [now, after, at];
  }
  takeHeadings(candidates, isTaken);
  return candidates.filter((_, at) => isTaken[at] === 1);
}

const none: Pick<Measured, "words" | "linkDensity"> = { words: 0, linkDensity: 0 };

/** Text in an element that marks the main part may be this short. */
const minMarkedWords = 5;

/** Implements figure 2 of the paper, with a shortcut for text inside `main` or `article`. */
function isMain(now: Measured, before: typeof none, after: typeof none): boolean {
  if (now.linkDensity > 0.333333) return false;
  if ((now.block.marks & mark.main) !== 0 && now.words >= minMarkedWords) return true;
  if (before.linkDensity > 0.555556) return now.words > 40 || after.words > 17;
  return now.words > 16 || after.words > 15 || before.words > 4;
}

/** Teasers also have first-level headings, but those are links. */
const isHeadline = ({ headingLevel, linkWords }: TextBlock) => headingLevel === 1 && linkWords === 0;

/** A heading belongs to what follows it, and a first-level one to the page. */
function takeHeadings(candidates: readonly Measured[], isTaken: Uint8Array): void {
  let follows = false;
  for (let at = candidates.length - 1; at >= 0; at--) {
    const { block } = candidates[at]!;
    if (!isHeading(block)) follows = isTaken[at] === 1;
    else if (follows || isHeadline(block)) isTaken[at] = 1;
  }
}

// Finds the element that contains the text as reader views do (the steps of Readability 0.6, counted in blocks). Paragraphs
// score for their ancestors, more for nearer ones, and links reduce the score. The best element wins, with those siblings that
// are also text. Values that differ from Readability's were fitted on the first halves of two public gold sets
// (test/bench/results/extraction.md).

const fewestScoredCharacters = 25;
const mostScoredAncestors = 5;
const alternativeShare = 0.75;
const fewestAlternatives = 3;
const mostAlternatives = 4;
const leastSiblingScore = 10;
const siblingShare = 0.2;
const maxSiblingDensity = 0.25;

/** An ancestor that contains hardly more text than the best element takes its place, and its siblings are checked. */
const aloneShare = 0.02;

/** The score that a headline adds to its element, so that a short text beside it is found. */
const headlineScore = 2;

const muchMore = 1.3;
const hardlyLinked = 0.1;

/** A region with fewer words, or with a smaller share of prose, was found by chance. */
const minRegionWords = 12;
const minRegionShare = 0.45;

/** Lists and short lines in the region are text unless they are mostly links. */
const maxRegionDensity = 0.6;

function mainRegion(
  candidates: readonly Measured[],
  { parents, isParagraph, isItem }: Containers,
): readonly Measured[] {
  const count = parents.length;
  const [scores, words, linkWords] = [
    new Float64Array(count),
    new Float64Array(count),
    new Float64Array(count),
  ];
  for (const { block } of candidates) {
    words[block.container]! += block.words;
    linkWords[block.container]! += block.linkWords;
    if (isHeadline(block)) addScore(scores, parents, parents[block.container]!, headlineScore);
    if (!isHeading(block) && block.text.length >= fewestScoredCharacters)
      addScore(
        scores,
        parents,
        isParagraph[block.container] || isItem[block.container] ? parents[block.container]! : block.container,
        scoreOf(block),
      );
  }
  addUp(words, parents);
  addUp(linkWords, parents);
  for (let at = 0; at < count; at++) scores[at]! *= 1 - linkWords[at]! / Math.max(1, words[at]!);
  let top = commonOf(scores, parents, climbed(scores, parents, bestOf(scores)));
  top = wholeOf(candidates, { parents, words, linkWords }, top);
  while (parents[top]! > 0 && words[parents[top]!]! <= (1 + aloneShare) * words[top]!) top = parents[top]!;
  const least = Math.max(leastSiblingScore, siblingShare * scores[top]!);
  const isIn = new Uint8Array(count);
  for (let at = 1; at < count; at++) {
    const isSibling = parents[at] === parents[top] && top !== 0;
    const isText =
      words[at]! > (isParagraph[at] ? 15 : 50) && linkWords[at]! < maxSiblingDensity * words[at]!;
    if (at === top || isIn[parents[at]!] === 1 || (isSibling && (scores[at]! >= least || isText)))
      isIn[at] = 1;
  }
  if (top === 0) isIn.fill(1);
  return candidates.filter(({ block }) => isIn[block.container] === 1 || isHeadline(block));
}

interface ContainerWords {
  readonly words: Float64Array;
  readonly linkWords: Float64Array;
}

/** Finds the largest ancestor with much more prose and few links. */
function wholeOf(
  candidates: readonly Measured[],
  { parents, words, linkWords }: ContainerWords & { readonly parents: readonly number[] },
  best: number,
): number {
  const prose = new Float64Array(parents.length);
  for (const one of candidates) if (isProse(one)) prose[one.block.container]! += one.words;
  addUp(prose, parents);
  let top = best;
  for (let at = parents[top]!; at > 0; at = parents[at]!)
    if (prose[at]! >= muchMore * prose[top]! && linkWords[at]! <= hardlyLinked * words[at]!) top = at;
  return top;
}

function scoreOf({ text }: TextBlock): number {
  let commas = 0;
  for (let at = text.indexOf(","); at >= 0 && commas < 50; at = text.indexOf(",", at + 1)) commas++;
  return 1 + commas + Math.min(3, text.length / 100);
}

function addScore(scores: Float64Array, parents: readonly number[], from: number, score: number): void {
  for (let at = from, level = 0; level < mostScoredAncestors && at > 0; at = parents[at]!, level++)
    scores[at]! += level === 0 ? score : level === 1 ? score / 2 : score / (3 * level);
}

function bestOf(scores: Float64Array): number {
  let best = 0;
  for (let at = 1; at < scores.length; at++) if (scores[at]! > scores[best]!) best = at;
  return best;
}

function climbed(scores: Float64Array, parents: readonly number[], top: number): number {
  const least = scores[top]! / 3;
  let last = scores[top]!;
  for (let at = parents[top]!; at > 0; at = parents[at]!) {
    if (scores[at]! < least) return top;
    if (scores[at]! > last) return at;
    last = scores[at]!;
  }
  return top;
}

/** If an element contains three other elements of nearly the best score, it is the text. */
function commonOf(scores: Float64Array, parents: readonly number[], top: number): number {
  let others: number[] = [];
  for (let at = 1; at < scores.length; at++)
    if (at !== top && scores[at]! >= alternativeShare * scores[top]!) others.push(at);
  others = others.sort((a, b) => scores[b]! - scores[a]!).slice(0, mostAlternatives);
  if (others.length < fewestAlternatives) return top;
  for (let at = parents[top]!; at > 0; at = parents[at]!)
    if (others.filter((other) => isWithin(parents, other, at)).length >= fewestAlternatives) return at;
  return top;
}

function isWithin(parents: readonly number[], inner: number, outer: number): boolean {
  let at = inner;
  while (at > outer) at = parents[at]!;
  return at === outer;
}
