/**
 * The part of a page's text that is its own: navigation, footers, notices and lists of links left out. Blocks
 * are told apart by link density and length, each with its neighbours (Kohlschütter, Fankhauser and Nejdl 2010,
 * "Boilerplate detection using shallow text features", the tree on number of words), after what their
 * elements say of them.
 *
 * The rest is left out of the index, not kept at a low weight: every page of a site repeats it, so that it says
 * nothing of this page, fills the vectors and hides near-duplicates. A page that has hardly anything else (a list of
 * links, a form) is taken with all its text.
 */
import { mark } from "./open-elements.ts";
import type { TextBlock } from "./text-blocks.ts";

/** With fewer words, the page's text is not one that the rules were made for. */
const minMainWords = 40;
const minMainShare = 0.1;

interface Measured {
  readonly block: TextBlock;
  readonly words: number;
  readonly linkDensity: number;
}

/** The blocks of the main text, in order, headings included. */
export function mainBlocks(blocks: readonly TextBlock[]): readonly TextBlock[] {
  const seen = blocks.filter((block) => (block.marks & mark.hidden) === 0);
  const measured = seen.map(measure);
  const unnamed = measured.filter(({ block }) => (block.marks & mark.furniture) === 0);
  const unlikely = unnamed.filter(({ block }) => (block.marks & mark.likelyFurniture) === 0);
  const [all, some] = [proseWords(unnamed), proseWords(unlikely)];
  const candidates = 2 * some < all ? unnamed : unlikely;
  const choices = [chosen(candidates), candidates, unnamed];
  const isEnough = (choice: readonly Measured[]) =>
    wordsOf(choice) >= Math.max(minMainWords, minMainShare * wordsOf(measured));
  const taken = choices.find(isEnough) ?? measured;
  return taken.length > 0 ? taken.map(({ block }) => block) : blocks;
}

function measure(block: TextBlock): Measured {
  const linkDensity = block.linkCharacters / block.text.length;
  return { block, words: block.words, linkDensity };
}

const wordsOf = (measured: readonly Measured[]) => measured.reduce((sum, { words }) => sum + words, 0);

/** Words in blocks that look like prose: long, and hardly linked. */
function proseWords(measured: readonly Measured[]): number {
  return wordsOf(measured.filter(({ words, linkDensity }) => words > 16 && linkDensity <= 1 / 3));
}

function chosen(candidates: readonly Measured[]): Measured[] {
  const prose = candidates.filter(({ block }) => block.headingLevel === 0);
  const kept = new Set<Measured>();
  for (let at = 0; at < prose.length; at++) {
    const now = prose[at]!;
    if (isMain(now, prose[at - 1] ?? none, prose[at + 1] ?? none)) kept.add(now);
  }
  keepHeadings(candidates, kept);
  return candidates.filter((one) => kept.has(one));
}

const none: Pick<Measured, "words" | "linkDensity"> = { words: 0, linkDensity: 0 };

/** What the page marks as its main part may be short. */
const minMarkedWords = 5;

/** The tree of the paper's figure 2, and a shorter way for what stands in the page's `main` or `article`. */
function isMain(now: Measured, before: typeof none, after: typeof none): boolean {
  if (now.linkDensity > 0.333333) return false;
  if ((now.block.marks & mark.main) !== 0 && now.words >= minMarkedWords) return true;
  if (before.linkDensity > 0.555556) return now.words > 40 || after.words > 17;
  return now.words > 16 || after.words > 15 || before.words > 4;
}

/** A heading belongs to what follows it; a first-level one is the page's own. */
function keepHeadings(candidates: readonly Measured[], kept: Set<Measured>): void {
  let follows = false;
  for (let at = candidates.length - 1; at >= 0; at--) {
    const now = candidates[at]!;
    if (now.block.headingLevel === 0) follows = kept.has(now);
    else if (follows || now.block.headingLevel === 1) kept.add(now);
  }
}
